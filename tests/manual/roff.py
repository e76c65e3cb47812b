"""The manual page as text: the sections of what `fa-verify man` prints."""
import re
import subprocess

ESCAPES = {"\\-": "-", "\\e": "\\", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\&": ""}


def printed(verify, *words):
    """What the program prints when called with these words."""
    return subprocess.run([verify, *words], capture_output=True, text=True, check=True).stdout


def plain(page):
    """The page without fonts and escapes, its lines as long as they are meant."""
    text = re.sub(r"\\\n", "", page)
    text = re.sub(r"\\f[BIR]", "", text)
    return re.sub(r"\\(?:\(..|[-e&])", lambda escape: ESCAPES[escape[0]], text)


def sections(page):
    """Title: text of each section, on one line."""
    parts = re.split(r"^\.SH (.*)\n", plain(page), flags=re.M)
    return {title: re.sub(r"\s+", " ", body) for title, body in zip(parts[1::2], parts[2::2])}


def entries(page, title):
    """(tag, text) of each entry of a section."""
    body = re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", plain(page), re.M | re.S)[1]
    found = re.findall(r"^\.TP\n(.*)\n((?:[^.].*\n)*)", body, re.M)
    return [(tag, " ".join(text.split())) for tag, text in found]
