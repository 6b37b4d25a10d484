"""A process is ended only if it is the very one that acquired a run, on this machine and since it was started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from taoloop.journals.process_identity import end_process, own_identity, parse_identity

linux = pytest.mark.skipif(sys.platform != "linux", reason="no other system identifies processes")


def test_what_is_stored_comes_back() -> None:
    own = own_identity()
    assert parse_identity(str(own)) == own
    assert parse_identity("") is None
    assert parse_identity("of another version") is None


@linux
def test_a_process_is_elsewhere_if_its_locks_cannot_be_seen_here() -> None:
    own = own_identity()._replace(boot="b", machine="m", host="h")
    here = own_identity()
    assert not here.is_elsewhere
    assert own.is_elsewhere
    assert not here._replace(namespace="pid:[1]").is_elsewhere, "a container of this machine: its locks are seen"
    assert here._replace(boot="b", host="h").is_elsewhere, "a copy of this machine under another name"
    restarted = here._replace(boot="b")
    assert restarted.is_elsewhere is (here.machine == "-"), "nothing is alive from before this machine was started"


@linux
def test_only_the_same_process_is_ended() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        own = own_identity()
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        started = stat.rpartition(")")[2].split()[19]
        identity = own._replace(process=str(child.pid), started=started)
        assert identity.is_identified
        for other in (
            identity._replace(started=str(int(started) - 1)),
            identity._replace(boot="b"),
            identity._replace(namespace="pid:[1]"),
        ):
            assert not other.is_identified
            assert not end_process(other)
        assert end_process(identity, term_s=0.05)
        assert child.wait(timeout=10) == -signal.SIGKILL
        assert end_process(identity), "it is gone already"
