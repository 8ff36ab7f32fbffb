import json
import shutil
import subprocess

import pytest

from regard.viz.js_bundle import bundle, embedded, name_of
from regard.viz.page import STATIC_FOLDER


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder


def run(script):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    return subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout


def test_modules_become_one_script_that_runs(tmp_path):
    write(
        tmp_path,
        main='import { twice as doubled, ONE } from "./twice.js";\n'
        'import * as other from "./other.js";\n'
        "const secret = 3;\n"
        "export function out() { return doubled(ONE) + secret + other.secret(); }\n",
        twice="export const ONE = 1;\nexport function twice(n) { return 2 * n; }\n",
        other='import { twice } from "./twice.js";\n'
        "const hidden = 10;\nexport function secret() { return twice(hidden); }\n",
    )
    script = bundle(tmp_path, "main")
    assert run(f"{script}\nconsole.log(module_main.out())") == "25\n"
    assert script.count("ONE = 1") == 1  # imported twice, written once


def test_names_of_one_module_are_not_seen_by_another(tmp_path):
    write(
        tmp_path,
        main='import { a } from "./a.js";\nconst hidden = 1;\n'
        "export function b() { return a() + hidden; }\n",
        a="const hidden = 2;\nexport function a() { return hidden; }\n",
    )
    assert run(f"{bundle(tmp_path, 'main')}\nconsole.log(module_main.b())") == "3\n"


def test_a_circle_is_refused(tmp_path):
    write(tmp_path, a='import { b } from "./b.js";\n', b='import { a } from "./a.js";\n')
    with pytest.raises(ValueError, match=r"not import in a circle: a > b > a"):
        bundle(tmp_path, "a")


@pytest.mark.parametrize(
    "text",
    ['import x from "./x.js";\n', 'import { x } from "https://cdn/x.js";\n', "export default 1;\n"],
)
def test_what_it_cannot_rewrite_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"main.js must import and export by name"):
        bundle(write(tmp_path, main=text), "main")


def test_every_module_of_the_page_is_in_it():
    script = bundle(STATIC_FOLDER, "viewer")
    for path in STATIC_FOLDER.rglob("*.js"):
        module = path.relative_to(STATIC_FOLDER).with_suffix("").as_posix()
        assert f"const {name_of(module)} = " in script


def test_data_cannot_end_a_script():
    data = {"text": '</script><!-- "quoted" \u2028'}
    written = embedded(data)
    assert "<" not in written and "\u2028" not in written
    assert json.loads(written) == data
