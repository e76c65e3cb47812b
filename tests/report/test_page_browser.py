"""The page in a browser: opened, filtered, sorted, read with mouse and keyboard, copied from, printed, made narrow and dark.

usage: test_page_browser.py FAULTY   (tests/support/faulty_backend.c: fa-verify with a subject that is wrong on purpose)

Needs the package playwright and a Chromium, its own or the system's; without them the test is skipped.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SKIPPED = 77
MANY = 100_000
PATIENCE_S = 10.0  # far more than the 2 s that a reader would bear: machines differ

failed = 0


def check(good: bool, what: str) -> None:
    """Counts a failed check, and says which."""
    global failed
    if not good:
        failed += 1
        print(f"failed: {what}", file=sys.stderr)


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    skip("no playwright (pip install playwright)")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium if there is one, else playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        if path is None and not os.path.exists(playwright.chromium.executable_path):
            skip("no Chromium (apt install chromium, or playwright install chromium)")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, path: Path, **options: Any) -> Iterator[Page]:
    """The page at path, loaded. Whatever it logs as an error, or asks of a network, is a failed check."""
    options.setdefault("viewport", {"width": 1200, "height": 900})
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    page = context.new_page()
    page.on("pageerror", lambda error: check(False, f"no error in the page: {error}"))
    page.on("console", lambda said: check(said.type != "error", f"no error on the console: {said.text}"))
    page.on("request", lambda asked: check(asked.url.startswith("file:"), f"no network: {asked.url}"))
    page.goto(path.as_uri())
    yield page
    context.close()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


HOSTILE = "</script><script>document.title='taken'</script><b>\"'&"


def make_report(program: str, folder: Path) -> Path:
    """A run of a few cases on subjects that are wrong in several ways, and its page."""
    small = {"dtype": "f16", "head_dim": 32, "heads_q": 2}
    cases = [
        {"name": "thirteen", "seqlen_q": 13, "note": "the one that fails"},
        {"name": "causal_13", "seqlen_q": 13, "mask": {"type": "causal"}},
        {"name": HOSTILE, "seqlen_q": 13},
        {"name": "eight", "seqlen_q": 8},
        {"name": "long", "seqlen_q": 70},
    ]
    file, report, page = folder / "cases.json", folder / "out.json", folder / "out.html"
    file.write_text(json.dumps({"fa_cases": 1, "defaults": small, "cases": cases}))
    subjects = [f"faulty:{how}" for how in ("wrong_o", "nan_o", "zero_gradients", "crash")]
    done = run(program, "run", "--cases", str(file), *(x for s in subjects for x in ("--backend", s)),
               "--report", str(report), "--html", str(page), "--no-progress")
    check(done.returncode == 1, f"the run finds failures: {done.returncode} {done.stderr}")
    return page


def settles(page: Page, expression: str) -> bool:
    """Waits until the expression holds in the page; false if it never does."""
    for _ in range(100):
        if page.evaluate(expression):
            return True
        page.wait_for_timeout(100)
    return False


def rows(page: Page) -> list[str]:
    return page.locator("table.long tr.row button.name").all_text_contents()


def find(page: Page, text: str) -> None:
    page.fill("[data-filter=text]", text)


def ratio_in(text: str) -> float:
    """The number in "b 0, h 0, q 12, d 0: 812 times the bound"."""
    match = re.search(r": ([\d,.e]+) times the bound", text)
    return float(match[1].replace(",", "")) if match else float("nan")


# ---- what a reader does ----


def test_overview(page: Page, report: dict[str, Any]) -> None:
    n = report["summary"]
    check(page.title() == f"{n['failed']} of {n['total']} failed - fa-verify", f"the title has the result: {page.title()}")
    check(page.locator(".count.failed b").text_content() == str(n["failed"]), "failures are counted at the top")
    check(len(rows(page)) == n["failed"], "the table begins with the failures")
    check(HOSTILE in rows(page), "a hostile name is text")
    check(page.locator("#causes .cause").count() >= 3, "failures are in groups")
    page.locator("#causes .cause button").first.click()
    check(page.locator(".found").text_content().startswith(page.locator("#causes .big").first.text_content() + " of "),
          "a group shows its failures")
    page.get_by_role("button", name="Reset").click()
    check(len(rows(page)) == n["failed"], "a reset shows the failures again")


def test_filters(page: Page, report: dict[str, Any]) -> None:
    n = report["summary"]
    page.click("[data-state=PASS]")
    check(page.get_attribute("[data-state=PASS]", "aria-pressed") == "true", "a state's button says that it is on")
    check(page.locator(".found").text_content() == f"{n['failed'] + n['passed']} of {n['total']} cases", "passes join")
    find(page, "EIGHT")
    check(set(rows(page)) == {"eight"}, f"text is found in any case: {rows(page)}")
    find(page, "")
    page.select_option("[data-filter=feature]", "causal")
    check(set(rows(page)) == {"causal_13"}, f"a feature narrows: {rows(page)}")
    page.get_by_role("button", name="Reset").click()
    page.select_option("[data-filter=tensor]", "dv")
    check(len(rows(page)) == 3, f"by failed tensor: {rows(page)}")
    page.get_by_role("button", name="Reset").click()
    page.select_option("[data-filter=backend]", "faulty:crash")
    check(len(rows(page)) == 3 and "CRASH" in page.locator("tr.row .state").first.text_content(), "by backend")
    page.get_by_role("button", name="Reset").click()


def test_sorting(page: Page) -> None:
    head = page.locator("table.long th[data-key=ratio]")
    head.get_by_role("button").click()
    check(head.get_attribute("aria-sort") == "descending", "the largest ratio first")
    first = page.locator("tr.row td.c-ratio").all_text_contents()
    head.get_by_role("button").click()
    check(head.get_attribute("aria-sort") == "ascending", "then the smallest")
    check(page.locator("tr.row td.c-ratio").all_text_contents() != first, "the order changes")
    page.locator("table.long th[data-key=name] button").click()
    check(rows(page) == sorted(rows(page)), f"by name: {rows(page)}")
    check(head.get_attribute("aria-sort") == "none", "only one column is sorted")


def test_failure(page: Page, report: dict[str, Any], program: str) -> None:
    """Opens the case with one wrong element, reads its picture, and runs its command."""
    wrong = next(f for f in report["failures"] if f["backend"] == "faulty:wrong_o" and f["name"] == "thirteen")
    page.select_option("[data-filter=backend]", "faulty:wrong_o")
    button = page.locator("tr.row button.name", has_text="thirteen")
    button.click()
    check(button.get_attribute("aria-expanded") == "true", "an open row says so")
    details = page.locator("tr.detail")
    text = details.text_content()
    check("the one that fails" in text and "[0,12,0,0]" in text, "note and worst element")
    check(all(part in text for part in ("quant", "accum", "half ulp")), "the bound's parts")
    tensor = next(t for t in wrong["tensors"] if t["name"] == "o")
    picture, read = details.locator(".maps figure:not(.strips) canvas").first, details.locator(".readout")
    picture.scroll_into_view_if_needed()
    picture.focus()  # goes to the worst cell
    check("b 0, h 0, q 12, d 0:" in read.text_content(), f"the worst cell: {read.text_content()}")
    said = ratio_in(read.text_content())
    check(abs(said / tensor["worst_ratio"] - 1) < .1, f"{said} is about {tensor['worst_ratio']}")
    page.keyboard.press("ArrowRight")
    check("d 1: within the bound" in read.text_content(), f"its neighbour is right: {read.text_content()}")
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    check("q 0, d 0:" in read.text_content(), f"keys reach the first row: {read.text_content()}")
    hover_worst(page, picture, read)
    strip = details.locator(".strips canvas").first
    strip.focus()
    check("h 0, q 12:" in read.text_content(), f"the strip's worst: {read.text_content()}")
    before = picture.bounding_box()
    details.get_by_role("button", name="Larger").click()
    after = details.locator(".maps figure:not(.strips) canvas").first.bounding_box()
    check(after["height"] > 1.5 * before["height"], "the picture grows")
    details.locator("select.tile").select_option("16")
    details.locator("summary", has_text="The case").click()
    check('"seqlen_q"' in details.text_content(), "the case as JSON")
    test_command(page, details, program)
    page.get_by_role("button", name="Reset").click()


def hover_worst(page: Page, picture: Any, read: Any) -> None:
    """Finds the wrong cell with the mouse: the only one that is not within its bound."""
    box = picture.bounding_box()
    for x, y in ((x, y) for y in range(16, int(box["height"]), 4) for x in range(4, 60, 4)):
        page.mouse.move(box["x"] + x, box["y"] + y)
        if "times the bound" in read.text_content():
            check("q 12, d 0:" in read.text_content(), f"under the mouse: {read.text_content()}")
            return
    check(False, "the mouse finds the wrong cell")


def test_command(page: Page, details: Any, program: str) -> None:
    details.get_by_role("button", name="Copy command that repeats it").click()
    page.wait_for_timeout(200)
    command = page.evaluate("navigator.clipboard.readText()")
    check(command.startswith("fa-verify run --backend faulty:wrong_o "), f"copied: {command}")
    again = run("sh", "-c", command.replace("fa-verify", f"'{program}'", 1))
    check(again.returncode == 1 and "FAIL thirteen" in again.stdout, f"the copied command fails alike: {again.stdout[:200]}")


def test_nan(page: Page) -> None:
    page.select_option("[data-filter=backend]", "faulty:nan_o")
    page.locator("tr.row button.name", has_text="thirteen").click()
    details = page.locator("tr.detail").last
    check("NaN or infinity" in details.locator(".legend").last.text_content(), "the legend has NaN")
    details.locator(".strips canvas").first.focus()
    check("NaN or infinity where it must not be" in details.locator(".readout").first.text_content(), "and the cell says it")
    page.get_by_role("button", name="Reset").click()


def test_keyboard(page: Page) -> None:
    """From the first name down with the arrow, and open it with Enter."""
    names = page.locator("tr.row button.name")
    names.nth(0).focus()
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.dataset.row")
    check(second == names.nth(1).get_attribute("data-row"), "down goes to the next case")
    was = page.evaluate("document.activeElement.getAttribute('aria-expanded')")
    page.keyboard.press("Enter")
    check(page.evaluate("document.activeElement.getAttribute('aria-expanded')") != was, "Enter opens or closes, and the focus stays")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    check(outline not in ("none", ""), f"what has the focus has a ring: {outline}")


def test_theme(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("button.theme")
    check(page.evaluate(ground) != light, "the button makes it dark")
    check(page.evaluate("document.documentElement.dataset.theme") == "dark", "and says so")
    page.click("button.theme")
    check(page.evaluate(ground) == light, "and light again")


def contrast(page: Page) -> float:
    """The least contrast of text against what is behind it, by WCAG's formula."""
    return page.evaluate("""() => {
      const lum = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
          .map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
      const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
          if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255,255,255)'; };
      let least = 21;
      for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.offsetParent) continue;
        const a = lum(getComputedStyle(e).color), b = lum(behind(e));
        least = Math.min(least, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
      }
      return least; }""")


def open_first(page: Page) -> None:
    page.locator("tr.row button.name").first.click()
    page.wait_for_timeout(100)


def test_looks(browser: Browser, path: Path) -> None:
    with opened(browser, path, color_scheme="dark") as page:
        open_first(page)
        check(page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)", "dark where the system is")
        check(contrast(page) >= 4.5, f"contrast in the dark: {contrast(page)}")
    with opened(browser, path) as page:
        open_first(page)
        check(contrast(page) >= 4.5, f"contrast in the light: {contrast(page)}")
    with opened(browser, path, viewport={"width": 400, "height": 800}) as page:
        open_first(page)
        check(page.evaluate("document.documentElement.scrollWidth") <= 400, "400 pixels are wide enough")
        box = page.locator("tr.row button.name").first.bounding_box()
        check(box["width"] > 100, f"names stay readable: {box}")


def test_paper(browser: Browser, path: Path, report: dict[str, Any]) -> None:
    with opened(browser, path) as page:
        page.emulate_media(media="print")
        shown = "document.querySelectorAll('tr.detail').length"
        check(settles(page, f"{shown} === {report['summary']['failed']}"), "every failure's details are printed")
        check(settles(page, "!document.querySelector('tr.detail details:not([open])')"), "all of them open")
        for control in (".filters", "nav", ".copy >> nth=0", ".map .field >> nth=0"):
            check(not page.locator(control).first.is_visible(), f"paper has no {control}")
        page.emulate_media(media="screen")
        check(settles(page, f"{shown} === 0"), "afterwards they are closed again")


def test_without_script(browser: Browser, path: Path, report: dict[str, Any]) -> None:
    with opened(browser, path, java_script_enabled=False) as page:
        check(page.locator("noscript details").count() == report["summary"]["failed"], "failures without JavaScript")
        check(page.locator(".count.failed b").text_content() == str(report["summary"]["failed"]), "and counts")


# ---- two reports ----


def test_comparison(browser: Browser, program: str, folder: Path) -> None:
    """The same cases right, then wrong, then right."""
    right, wrong = folder / "right.json", folder / "wrong.json"
    for backend, path in (("ref-f32", right), ("faulty:wrong_o", wrong)):
        run(program, "run", "--cases", str(folder / "cases.json"), "--backend", backend, "--report", str(path), "--no-progress")
    page_file = folder / "compared.html"
    done = run(program, "report", str(right), str(wrong), "--compare", "--html", str(page_file))
    check(done.returncode == 1 and "new:3 " in done.stdout and "thirteen" in done.stdout, f"new failures: {done.stdout}")
    back = run(program, "report", str(wrong), str(right), "--compare")
    check(back.returncode == 0 and "fixed:3 " in back.stdout, f"and back: {back.stdout}")
    with opened(browser, page_file) as page:
        table = page.locator("#comparison table")
        check(table.locator("tbody tr").count() >= 3, "the page has the rows")
        table.get_by_role("button", name="thirteen", exact=True).click()
        check(page.locator("tr.detail").count() == 1, "a new failure opens from there")


# ---- many cases ----


def many_cases(report: dict[str, Any], path: Path) -> None:
    """A report of MANY cases, some hundred of which fail."""
    random.seed(1)
    words, failures, cases = ["f16", "bf16", "flash", "causal", "window", "gqa", "backward", "dropout", "varlen"], [], []
    for i in range(MANY):
        bad = i % 300 == 7
        case = {"name": f"#{i}", "state": "FAIL" if bad else "SKIP" if i % 11 == 0 else "PASS", "backend": "cuda",
                "kernel": f"flash_forward<f16,{random.choice([64, 128])}>", "record": f"{i:016x}", "seconds": random.random(),
                "worst_ratio": random.random() * (1e4 if bad else 1), "passes": 3, "features": " ".join(random.sample(words, 5)),
                "ratios": {t: random.random() for t in ("o", "lse", "dq", "dk", "dv")}}
        cases.append(case)
        if bad:
            failures.append({**report["failures"][len(failures) % len(report["failures"])], "name": case["name"], "state": "FAIL"})
    counts = {"total": MANY, "failed": len(failures), "error": 0}
    counts["skipped"] = sum(c["state"] == "SKIP" for c in cases)
    counts["passed"] = MANY - counts["failed"] - counts["skipped"]
    path.write_text(json.dumps({**report, "groups": [], "summary": counts, "cases": cases, "failures": failures}))


def timed(page: Page, what: str, act: Callable[[], None]) -> None:
    start = time.monotonic()
    act()
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    took = time.monotonic() - start
    print(f"{MANY} cases: {what} in {took:.2f} s")
    check(took < PATIENCE_S, f"{what} took {took:.2f} s")


def test_many(browser: Browser, program: str, folder: Path, report: dict[str, Any]) -> None:
    file, page_file = folder / "many.json", folder / "many.html"
    many_cases(report, file)
    done = run(program, "report", str(file), "--html", str(page_file))
    check(done.returncode == 0, f"the page of many cases: {done.stderr}")
    print(f"{MANY} cases: a page of {page_file.stat().st_size / 1e6:.1f} MB")
    start = time.monotonic()
    with opened(browser, page_file) as page:
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        took = time.monotonic() - start
        print(f"{MANY} cases: open in {took:.2f} s, of which the page's own clock says {page.evaluate('document.documentElement.dataset.ready')} ms")
        check(took < PATIENCE_S, f"{MANY} cases opened in {took:.2f} s")
        timed(page, "all shown", lambda: page.click("[data-state=PASS]"))
        timed(page, "sorted by name", lambda: page.click("table.long th[data-key=name] button"))
        timed(page, "searched", lambda: find(page, "#9998"))
        check(rows(page)[0] == "#9998", f"found: {rows(page)[:3]}")
        find(page, "")
        timed(page, "scrolled to the end", lambda: page.evaluate("scrollTo(0, document.body.scrollHeight * .9)"))
        check(page.locator("tr.row").count() < 100, "only rows in sight are elements")


def main() -> int:
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        path = make_report(program, folder)
        report = json.loads((folder / "out.json").read_text())
        with opened(browser, path, permissions=["clipboard-read", "clipboard-write"]) as page:
            test_overview(page, report)
            test_filters(page, report)
            test_sorting(page)
            test_failure(page, report, program)
            test_nan(page)
            test_keyboard(page)
            test_theme(page)
        test_looks(browser, path)
        test_paper(browser, path, report)
        test_without_script(browser, path, report)
        test_comparison(browser, program, folder)
        test_many(browser, program, folder, report)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
