"""An experiment that a signal stops goes on with the same command, and its record is that of one that never stopped."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from theory.cluster.driver import Driver
from theory.experiment import Configuration, experiment, read_record
from theory.experiment.cli import main
from theory.experiment.ranks import Stopping
from theory.reporting.files import ConfigurationError

KNOWN = dict(data="breast_cancer", workers=2, steps=60, batch=4, points=6, methods=("sgd", "top-3-memory"))


def record_in(folder):
    (found,) = folder.iterdir()
    return read_record(found)


def do(folder, stopping=None, **changed):
    said = []
    code = experiment(Configuration(**KNOWN | {"out": str(folder)} | changed), stopping=stopping, say=said.append)
    return code, said


def test_an_experiment_that_was_stopped_goes_on_with_the_same_command(tmp_path, monkeypatch, capsys):
    assert do(tmp_path / "whole")[0] == 0
    whole = record_in(tmp_path / "whole")
    kept = Stopping(str(tmp_path / "kept"), "10", str(tmp_path / "kept")).checked()  # nothing is there yet
    advance = Driver.advance

    def interrupted(self, start, stop):
        advance(self, start, stop)
        if "TopK" in repr(self.run.setup.method) and start <= 25 < stop:
            os.kill(os.getpid(), signal.SIGUSR1)

    with monkeypatch.context() as patch:
        patch.setattr(Driver, "advance", interrupted)
        code, said = do(tmp_path / "stopped", kept)
    assert code == 75 and said[-1] == f"go on: the same command with --resume {tmp_path / 'kept'}"
    stopped = record_in(tmp_path / "stopped")
    assert stopped.status == "interrupted" and "SIGUSR1" in stopped.reason and list(stopped.results) == ["sgd"]

    rounds = []

    def counted(self, start, stop):
        rounds.append((start, stop))
        advance(self, start, stop)

    monkeypatch.setattr(Driver, "advance", counted)
    assert do(tmp_path / "again", kept)[0] == 0
    again = record_in(tmp_path / "again")
    assert again.status == "complete" and rounds and rounds[0][0] > 20  # of the second method; the first was complete
    for label, result in whole.results.items():
        assert result["largest_f"] == again.results[label]["largest_f"] and result["gap"] == again.results[label]["gap"]
        assert np.array_equal(whole.arrays(label)["x"], again.arrays(label)["x"])
        for name in ("step", "bits_up", "f", "gradient_norm"):
            assert np.array_equal(whole.histories[label][name], again.histories[label][name])
    with pytest.raises(ConfigurationError, match=r"this run differs from the stored one: seed \(was"):
        do(tmp_path / "other", kept, seed=1)
    with pytest.raises(SystemExit):
        main(["--checkpoint", kept.resume])
    assert f"--checkpoint: {kept.resume} has checkpoints; add --resume {kept.resume}" in capsys.readouterr().err
