"""docs/symptoms.md: every limit has a lab or says that none teaches it."""

from course.desk.catalogue import CORE, ELECTIVES
from course.desk.places import PACKAGE
from course.look.limits import table
from course.notebooks import symptoms

IDS = (
    "slots kv_blocks kv_filling state_blocks max_model_len cuda_graphs other_process card_memory sampler_memory "
    "prefill_budget step client client_cap burst stuck"
)


def test_the_page_is_the_table():
    assert symptoms.FILE.read_text(encoding="utf-8") == symptoms.text()
    assert "docs/symptoms.md" in (PACKAGE.parent / "README.md").read_text(encoding="utf-8")


def test_every_limit_has_a_lab_or_none_teaches_it():
    assert set(table()) == set(IDS.split())
    rows = {line.split("`")[1]: line for line in symptoms.text().splitlines() if line.startswith("| `")}
    for name, one in table().items():
        assert one["lab"] in (*CORE, *ELECTIVES, "")
        assert (f"| {one['lab']}" in rows[name]) if one["lab"] else rows[name].endswith("| none teaches it |")
        assert all(one[key] for key in ("symptom", "cause", "next", "vLLM", "SGLang"))
