"""The learner's copies: made once, never overwritten, told about when the original changes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from course.desk import copies, places, workspace
from tests.helpers.sizes import PATIENCE


@pytest.fixture
def labs(tmp_path: Path) -> Path:
    """A folder with two handed-out labs."""
    folder = tmp_path / "labs"
    folder.mkdir()
    (folder / "03_a.ipynb").write_text("first")
    (folder / "04_b.ipynb").write_text("second")
    return folder


def test_missing_labs_are_copied_byte_for_byte(labs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "new" / "my labs"
    copied = copies.copy_labs(labs, mine)
    assert copied.new == ("03_a.ipynb", "04_b.ipynb")
    assert copied.kept == copied.changed == ()
    assert {path.name: path.read_text() for path in mine.glob("*.ipynb")} == {
        "03_a.ipynb": "first",
        "04_b.ipynb": "second",
    }


def test_a_learners_edit_is_never_overwritten(labs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my-labs"
    copies.copy_labs(labs, mine)
    (mine / "03_a.ipynb").write_text("my answer")
    (labs / "03_a.ipynb").write_text("first, corrected")
    copied = copies.copy_labs(labs, mine)
    assert (mine / "03_a.ipynb").read_text() == "my answer"
    assert copied.kept == ("03_a.ipynb", "04_b.ipynb")
    assert copied.changed == ("03_a.ipynb",)
    assert any("03_a.ipynb has changed" in line for line in copied.report(mine))


def test_a_change_is_told_again_until_the_copy_is_renewed(labs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my-labs"
    copies.copy_labs(labs, mine)
    (mine / "04_b.ipynb").write_text("my answer")
    (labs / "04_b.ipynb").write_text("second, corrected")
    assert copies.copy_labs(labs, mine).changed == copies.copy_labs(labs, mine).changed == ("04_b.ipynb",)
    (mine / "04_b.ipynb").rename(mine / "04_b_old.ipynb")
    assert copies.copy_labs(labs, mine).new == ("04_b.ipynb",)
    assert copies.copy_labs(labs, mine).changed == ()
    assert (mine / "04_b.ipynb").read_text() == "second, corrected"
    assert (mine / "04_b_old.ipynb").read_text() == "my answer"


def test_a_copy_that_nobody_touched_follows_its_lab(labs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my-labs"
    copies.copy_labs(labs, mine)
    for version in ("second, corrected", "second, corrected twice"):
        (labs / "04_b.ipynb").write_text(version)
        copied = copies.copy_labs(labs, mine)
        assert (copied.refreshed, copied.changed) == (("04_b.ipynb",), ())
        assert (mine / "04_b.ipynb").read_text() == version
        assert copied.report(mine) == ["Newer versions in my-labs/, of labs that you had not changed: 04_b.ipynb"]
        assert copies.copy_labs(labs, mine).report(mine) == []


def test_an_untouched_copy_behind_a_link_is_left_alone(labs: Path, tmp_path: Path) -> None:
    """It is somebody's own arrangement: replacing it would cut the link."""
    mine = tmp_path / "my-labs"
    copies.copy_labs(labs, mine)
    (mine / "04_b.ipynb").rename(tmp_path / "elsewhere.ipynb")
    (mine / "04_b.ipynb").symlink_to(tmp_path / "elsewhere.ipynb")
    (labs / "04_b.ipynb").write_text("second, corrected")
    assert copies.copy_labs(labs, mine).changed == ("04_b.ipynb",)
    assert (mine / "04_b.ipynb").is_symlink() and (mine / "04_b.ipynb").read_text() == "second"


@pytest.mark.parametrize("mine", ["my-labs", "copies of mine"])
def test_the_advice_is_a_command_that_works_here(
    labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str
) -> None:
    """With MY_LABS given to make alone: the copy that is renewed is the one that was told about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MY_LABS", raising=False)
    monkeypatch.setenv("PATH", os.path.dirname(shutil.which("sh")))
    folder = tmp_path / mine
    copies.copy_labs(labs, folder)
    (folder / "03_a.ipynb").write_text("my answer")
    (labs / "03_a.ipynb").write_text("first, corrected")
    (line,) = copies.copy_labs(labs, folder).report(folder)
    advice = line.partition("put yours aside with: ")[2]
    done = subprocess.run(["sh", "-c", advice], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "03_a.ipynb").read_text() == "first, corrected"
    assert copies.copy_labs(labs, folder).report(folder) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine, "labs"])


def test_an_unchanged_folder_is_not_written_to(labs: Path, tmp_path: Path) -> None:
    """A second start must work where the folder has become read-only."""
    mine = tmp_path / "my-labs"
    copies.copy_labs(labs, mine)
    stamp = (mine / copies.RECORD).stat().st_mtime_ns
    assert copies.copy_labs(labs, mine).report(mine) == []
    assert (mine / copies.RECORD).stat().st_mtime_ns == stamp


@pytest.mark.parametrize("content", ["", "{broken", "[1, 2]", '"text"', "\x00"])
def test_a_broken_record_loses_no_copy(labs: Path, tmp_path: Path, content: str) -> None:
    mine = tmp_path / "my-labs"
    copies.copy_labs(labs, mine)
    (mine / "03_a.ipynb").write_text("my answer")
    (mine / copies.RECORD).write_text(content)
    copied = copies.copy_labs(labs, mine)
    assert copied.new == copied.changed == ()
    assert (mine / "03_a.ipynb").read_text() == "my answer"
    # The untouched copy is recognised again; of the edited one nobody knows which version it was made from.
    assert list(json.loads((mine / copies.RECORD).read_text())) == ["04_b.ipynb"]


def test_a_dangling_link_counts_as_the_learners_file(labs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my-labs"
    mine.mkdir()
    (mine / "03_a.ipynb").symlink_to(tmp_path / "gone.ipynb")
    assert copies.copy_labs(labs, mine).kept == ("03_a.ipynb",)
    assert not (tmp_path / "gone.ipynb").exists()


def test_a_folder_that_cannot_be_written_gives_a_sentence(
    labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The superuser may write anywhere, so the refusal is simulated instead of taking the rights away."""

    def refuse(path: Path, _content: bytes) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(copies.files, "write_new", refuse)
    with pytest.raises(
        copies.WorkspaceError, match=r"Your copies of the labs cannot be kept.*Permission denied.*MY_LABS"
    ):
        copies.copy_labs(labs, tmp_path / "my-labs")
    assert workspace.main(["--labs", str(labs), "--to", str(tmp_path / "my-labs"), "--copy-only"]) == 1
    assert "Your copies of the labs cannot be kept" in capsys.readouterr().err


def test_a_file_in_the_way_gives_a_sentence(labs: Path, tmp_path: Path) -> None:
    (tmp_path / "my-labs").write_text("not a folder")
    with pytest.raises(copies.WorkspaceError, match="Your copies of the labs cannot be kept"):
        copies.copy_labs(labs, tmp_path / "my-labs")


def test_started_elsewhere_it_says_where_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "nowhere" / "course")
    assert workspace.main(["--copy-only"]) == 1
    assert "start this in the course's folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_jupyterlab_opens_on_the_copies_with_a_token(labs: Path, tmp_path: Path) -> None:
    """The real server: on 127.0.0.1, closed without the token, showing the copies with it."""
    command = [sys.executable, "-m", "course.desk.workspace", "--labs", str(labs), "--to", str(tmp_path / "my labs")]
    with subprocess.Popen(
        [*command, "--no-browser", "--port=0"], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as server:
        try:
            address, token = started(server)
            assert address.startswith("http://127.0.0.1:")
            names = {entry["name"] for entry in json.loads(get(f"{address}/api/contents?token={token}"))["content"]}
            settings = get(f"{address}/lab/api/settings/@jupyterlab/apputils-extension:notification?token={token}")
            with pytest.raises(urllib.error.HTTPError, match="403"):
                get(f"{address}/api/contents")
        finally:
            server.terminate()
    assert names == {"03_a.ipynb", "04_b.ipynb", "START.md", "glossary.md"}
    # These two are what makes JupyterLab ask whether it may fetch news, and look for updates.
    properties = json.loads(settings)["schema"]["properties"]
    assert (properties["fetchNews"]["default"], properties["checkForUpdates"]["default"]) == ("false", False)


def get(url: str) -> str:
    """The answer's text. The server prints its address shortly before it listens, so a refusal is tried again."""
    for _ in range(2 * PATIENCE):
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            time.sleep(0.5)
    raise AssertionError(f"nothing answers at {url}")


def started(server: subprocess.Popen[str]) -> tuple[str, str]:
    """Address and token that the server prints when it is ready."""
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab\S*\?token=(\w+)", line):
            return found[1], found[2]
    raise AssertionError(f"JupyterLab ended with {server.wait()} before it printed an address")


def test_a_copy_that_cannot_be_completed_leaves_nothing_behind(tmp_path):
    """Half a lab would be taken for the learner's own copy from then on."""
    labs, mine = tmp_path / "labs", tmp_path / "mine"
    labs.mkdir()
    (labs / "01_a.ipynb").write_bytes(b"x" * 100_000)
    code = f"""
import resource, signal
from pathlib import Path
from course.desk.copies import copy_labs
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
copy_labs(Path({str(labs)!r}), Path({str(mine)!r}))
"""
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert failed.returncode and "Your copies of the labs cannot be kept" in failed.stderr
    assert copies.copy_labs(labs, mine).new == ("01_a.ipynb",)
    assert (mine / "01_a.ipynb").stat().st_size == 100_000
