"""A Slurm of one's own for a test: munged, slurmctld and several slurmd on this machine, in one folder, over loopback only."""

from __future__ import annotations

import contextlib
import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterator

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "squeue", "scancel")
PR_SET_CHILD_SUBREAPER = 36
# cred_expire is also how long a requeued job waits before it begins again.
CONFIGURATION = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=15
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=1,sched_interval=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
JobRequeue=1
KillWait=10
MinJobAge=3600
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def missing() -> list[str]:
    """What is not installed of it."""
    return [name for name in PROGRAMS if not find(name)]


def find(name: str) -> str | None:
    """Daemons are in folders that are not in everyone's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def free_ports(n: int) -> list[int]:
    """Ports of the loopback interface that nothing listens on."""
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_until(what: str, is_so: Callable[[], Any], seconds: float) -> Any:
    """What is_so gives as soon as that is true; after so many seconds an error that says what was waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = is_so()
        if value:
            return value
        time.sleep(0.2)
    raise TimeoutError(f"{seconds:.0f} s without: {what}")


def descendants() -> list[int]:
    """Processes that this one, or one of its children, has begun; the process is their subreaper."""
    parent: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, frontier = [], [os.getpid()]
    while frontier:
        frontier = [pid for pid, of in parent.items() if of in frontier]
        found += frontier
    return found


class Cluster:
    """A running cluster. folder: configuration, spool and logs. nodes: their names."""

    def __init__(self, folder: Path, n_nodes: int) -> None:
        self.folder = folder
        self.nodes = [f"n{i}" for i in range(n_nodes)]
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
        self.environment["SLURM_CONF"] = str(folder / "slurm.conf")

    def configure(self) -> None:
        """Writes slurm.conf and the key that munged signs with."""
        control, *ports = free_ports(1 + len(self.nodes))
        host = socket.gethostname().partition(".")[0]
        nodes = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100"
                          for name, port in zip(self.nodes, ports))
        text = CONFIGURATION.format(host=host, port=control, user=getpass.getuser(), folder=self.folder, nodes=nodes)
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))

    def start_daemon(self, name: str, *arguments: str) -> None:
        """In the foreground of a process of ours, its output in a file."""
        program = find(name)
        assert program
        with (self.folder / f"{name}.{len(self.daemons)}.out").open("wb") as out:
            self.daemons.append(subprocess.Popen([program, *arguments], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                                 env=self.environment, cwd=self.folder))

    def start(self) -> None:
        """Starts everything and waits until all nodes take jobs."""
        self.configure()
        place = self.folder
        self.start_daemon("munged", "--foreground", "--force", f"--key-file={place}/munge.key", f"--socket={place}/munge.socket",
                          f"--pid-file={place}/munged.pid", f"--log-file={place}/munged.log", f"--seed-file={place}/munged.seed")
        wait_until("munged's socket", (place / "munge.socket").exists, 30)
        self.start_daemon("slurmctld", "-D", "-i")
        for name in self.nodes:
            (place / f"spool.{name}").mkdir()
            self.start_daemon("slurmd", "-D", "-N", name)
        wait_until("all nodes idle", lambda: self.states() == ["idle"] * len(self.nodes), 60)

    def states(self) -> list[str]:
        """Of each node, in words such as idle, alloc or drain."""
        return self.say("sinfo", "-h", "-N", "-o", "%t", check=False).split()

    def say(self, *words: str, check: bool = True) -> str:
        """Runs one of Slurm's commands, and gives its output."""
        done = subprocess.run(words, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def stop(self) -> None:
        """Ends jobs and daemons, then whatever is left of what they began."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self.say("scancel", "-u", getpass.getuser(), check=False)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in self.daemons:
            daemon.wait(10)


@contextlib.contextmanager
def cluster(folder: Path, n_nodes: int) -> Iterator[Cluster]:
    """A cluster that is stopped whatever happens."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    running = Cluster(folder, n_nodes)
    before = signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        running.start()
        yield running
    except BaseException:
        for log in sorted([*folder.glob("*.log"), *folder.glob("*.out")]):
            print(f"---- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-12:]))
        raise
    finally:
        running.stop()
        signal.signal(signal.SIGTERM, before)
