"""A campaign as an array of eight tasks under a real Slurm: two are requeued while they run, and a node is drained. The
merged report is that of a run in one.

    test_slurm.py FA-VERIFY PLANTED.so
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import shares
import slurm

HERE = Path(__file__).parent
TASKS = 8
CASES = 1600
SKIPPED = 77


class Requeued(NamedTuple):
    """A task that was requeued: the lines of its journal when it had ended, without the first."""

    task: int
    lines: list[str]


class Campaign:
    """An array job in a cluster."""

    def __init__(self, cluster: slurm.Cluster, program: str, plugin: str) -> None:
        self.cluster = cluster
        self.program = program
        # How far an explanation is looked for depends on the time that there is.
        self.arguments = ["--profile", "everything", "--count", str(CASES), "--seed", "7", "--no-explain", "--backend",
                          f"plugin:{plugin}", "--jobs", "1"]
        self.shards = cluster.folder / "shards"
        self.job = ""

    def environment(self) -> dict[str, str]:
        """Of the program."""
        return {"FA_PLANTED": "three_bugs", "FA_VERIFY": self.program, "OPENBLAS_NUM_THREADS": "1"}

    def submit(self) -> None:
        """The job script as it is in the guide."""
        self.shards.mkdir()
        self.cluster.environment |= self.environment()
        answer = self.cluster.say("sbatch", "--parsable", str(HERE / "campaign.sbatch"), *self.arguments)
        self.job = answer.split(";")[0]

    def journal(self, task: int) -> list[str]:
        """The complete results that a task has so far."""
        path = self.shards / f"part.{task}.json.journal"
        return path.read_text().split("\n")[1:-1] if path.exists() else []

    def show(self, task: int) -> dict[str, str]:
        """What Slurm says of a task."""
        return dict(re.findall(r"(\w+)=(\S*)", self.cluster.say("scontrol", "-o", "show", "job", f"{self.job}_{task}")))

    def state(self, task: int) -> str:
        """RUNNING, PENDING, COMPLETED, FAILED: the program's exit code is 1, because the subject has bugs."""
        return self.show(task)["JobState"]

    def under_way(self, but: list[int]) -> int | None:
        """A task, not one of these, that has results, but not half of its shard."""
        share = CASES // TASKS
        return next((task for task in range(TASKS) if task not in but and share // 20 <= len(self.journal(task)) < share // 2
                     and self.state(task) == "RUNNING"), None)

    def drain_one(self) -> str:
        """Takes a node that runs a task out of use: what runs there may end."""
        [node] = slurm.wait_until("a task that runs", lambda: [
            show["NodeList"] for show in map(self.show, range(TASKS)) if show["JobState"] == "RUNNING"][:1], 240)
        self.cluster.say("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
        return str(node)

    def requeue_one(self, but: list[int]) -> Requeued:
        """Requeues a task that is under way, and waits until its process has ended."""
        [task] = slurm.wait_until("a task with results", lambda: [t for t in [self.under_way(but)] if t is not None], 240)
        self.cluster.say("scontrol", "requeue", f"{self.job}_{task}")
        slurm.wait_until(f"task {task} pending again", lambda: self.state(task) == "PENDING", 90)
        lines = self.journal(task)
        assert 0 < len(lines) < CASES // TASKS, f"task {task}: {len(lines)} results when it was requeued"
        return Requeued(task, lines)


def check_kept(campaign: Campaign, requeued: Requeued) -> None:
    """What the first process had done stands in the report with the times that it took: nothing was done twice."""
    report = json.loads((campaign.shards / f"part.{requeued.task}.json").read_text())
    seconds = {case["name"]: case["seconds"] for case in report["cases"]}
    for line in requeued.lines:
        case = json.loads(line)
        assert seconds[case["name"]] == case["seconds"], f"{case['name']} ran again"
    assert campaign.show(requeued.task)["Restarts"] == "1", campaign.show(requeued.task)
    print(f"task {requeued.task}: requeued with {len(requeued.lines)} of {len(seconds)} results, none of which ran again")


def check_drained(campaign: Campaign, node: str, before: set[int]) -> None:
    """No task began on the node once it was drained, and the job did not need it."""
    after = [task for task in range(TASKS) if campaign.show(task)["NodeList"] == node and task not in before]
    assert not after, f"tasks {after} began on {node}"
    assert campaign.cluster.say("sinfo", "-h", "-n", node, "-o", "%t").startswith("drain")
    print(f"{node} was drained: tasks {sorted(before)} ended there, none began")


def run_campaign(campaign: Campaign) -> None:
    """Submits, requeues two tasks, drains a node, waits for the end."""
    campaign.submit()
    requeued = [campaign.requeue_one([])]
    node = campaign.drain_one()
    there = {task for task in range(TASKS) if campaign.show(task).get("NodeList") == node}
    requeued.append(campaign.requeue_one([requeued[0].task]))
    slurm.wait_until("the end of all tasks", lambda: all(
        campaign.state(task) in ("COMPLETED", "FAILED") for task in range(TASKS)), 540)
    for one in requeued:
        check_kept(campaign, one)
    check_drained(campaign, node, there)


def check_merged(campaign: Campaign) -> int:
    """Compares with a run in one."""
    folder = campaign.cluster.folder
    whole = folder / "whole.json"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")} | campaign.environment()
    command = [campaign.program, "random", *campaign.arguments[:-2], "--report", str(whole), "-q"]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    parts = [campaign.shards / f"part.{task}.json" for task in range(TASKS)]
    in_shares = shares.merged(campaign.program, parts, folder / "all.json")
    in_one = shares.merged(campaign.program, [whole], folder / "one.json")
    lines = shares.differences(in_shares, in_one)
    for line in lines:
        print(f"failed: {line}")
    summary: dict[str, Any] = in_shares["summary"]
    print(f"{len(parts)} reports merged: {summary['total']} cases, {summary['failed']} failed, {len(in_shares['groups'])} groups; "
          + ("different" if lines else "as in one run"))
    return 1 if lines else 0


def main() -> int:
    """Exit code 77 where there is no Slurm."""
    absent = slurm.missing()
    if absent:
        print(f"skipped: not installed: {' '.join(absent)} (Debian: slurm-wlm, munge)")
        return SKIPPED
    program, plugin = (str(Path(word).resolve()) for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name, slurm.cluster(Path(name), n_nodes=4) as cluster:
        campaign = Campaign(cluster, program, plugin)
        run_campaign(campaign)
        return check_merged(campaign)


if __name__ == "__main__":
    sys.exit(main())
