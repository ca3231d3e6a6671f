from surelabel.methods.variational import available_memory
from surelabel.methods.variational.available_memory import available_memory_bytes


def test_the_available_memory_of_this_machine_is_at_most_its_memory():
    lines = available_memory.MEMORY_FILE.read_text().splitlines()
    total = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    assert 0 < available_memory_bytes() <= 1024 * total


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    5000 kB\n")
    monkeypatch.setattr(available_memory, "MEMORY_FILE", tmp_path / "meminfo")
    monkeypatch.setattr(available_memory, "CONTROL_GROUP", tmp_path)
    assert available_memory_bytes() == 5_000 * 1024
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert available_memory_bytes() == 2_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory_bytes() == 5_000 * 1024


def test_a_system_without_these_files_has_a_default(tmp_path, monkeypatch):
    monkeypatch.setattr(available_memory, "MEMORY_FILE", tmp_path / "missing")
    monkeypatch.setattr(available_memory, "CONTROL_GROUP", tmp_path)
    assert available_memory_bytes() == 2**30
