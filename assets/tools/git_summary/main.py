"""Asks Git about a repository, in forms that are made for programs."""

import subprocess

FIELDS = "%H%x1f%an%x1f%aI%x1f%s"


def run(path, commits=5):
    status = _git(path, "status", "--porcelain", "--branch").splitlines()
    branch = status[0].removeprefix("## ").split("...")[0] if status else ""
    log = _git(path, "log", f"--max-count={commits}", f"--format={FIELDS}", check=False)
    return {
        "branch": branch.removeprefix("No commits yet on "),
        "changes": [{"state": line[:2].strip(), "path": line[3:]} for line in status[1:]],
        "commits": [
            dict(zip(("commit", "author", "at", "subject"), line.split("\x1f"))) for line in log.splitlines()
        ],
    }


def _git(path, *words, check=True):
    asked = subprocess.run(["git", "-C", path, *words], capture_output=True, text=True, check=check)
    return asked.stdout
