import json
import shutil
import subprocess

import pytest

from regard.viz import STATIC_FOLDER
from regard.viz.js_bundle import bundle_modules, escape_json, module_variable


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder


def run(script):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    return subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout


def test_bundled_modules_run_as_one_script(tmp_path):
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
    script = bundle_modules(tmp_path, "main")
    assert run(f"{script}\nconsole.log(module_main.out())") == "25\n"
    assert script.count("ONE = 1") == 1  # imported twice, written once


def test_modules_do_not_share_their_private_names(tmp_path):
    write(
        tmp_path,
        main='import { a } from "./a.js";\nconst hidden = 1;\n'
        "export function b() { return a() + hidden; }\n",
        a="const hidden = 2;\nexport function a() { return hidden; }\n",
    )
    assert run(f"{bundle_modules(tmp_path, 'main')}\nconsole.log(module_main.b())") == "3\n"


def test_modules_of_other_folders_are_bundled_once(tmp_path):
    for name in ("app", "shared/parts"):
        (tmp_path / name).mkdir(parents=True)
    write(
        tmp_path / "app",
        main='import { a } from "../shared/a.js";\nimport { b } from "../shared/parts/b.js";\n'
        "export function sum() { return a + b; }\n",
    )
    write(tmp_path / "shared", a='import { b } from "./parts/b.js";\nexport const a = b + 1;\n')
    write(tmp_path / "shared" / "parts", b="export const b = 10;\n")
    script = bundle_modules(tmp_path / "app", "main")
    assert run(f"{script}\nconsole.log(module_main.sum())") == "21\n"
    assert script.count("b = 10") == 1


def test_circular_imports_are_refused(tmp_path):
    write(tmp_path, a='import { b } from "./b.js";\n', b='import { a } from "./a.js";\n')
    with pytest.raises(ValueError, match=r"imports must not be circular: a > b > a"):
        bundle_modules(tmp_path, "a")


@pytest.mark.parametrize(
    "text",
    ['import x from "./x.js";\n', 'import { x } from "https://cdn/x.js";\n', "export default 1;\n"],
)
def test_unsupported_import_or_export_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"main.js must import and export by name"):
        bundle_modules(write(tmp_path, main=text), "main")


def test_bundle_of_the_widget_has_the_viewer_and_all_its_modules():
    script = bundle_modules(STATIC_FOLDER, "widget")
    paths = [*STATIC_FOLDER.rglob("*.js")]
    assert paths
    for path in paths:
        module = path.relative_to(STATIC_FOLDER).with_suffix("").as_posix()
        assert f"const {module_variable(module)} = " in script


def test_escaped_json_cannot_end_a_script_element():
    data = {"text": '</script><!-- "quoted" \u2028'}
    escaped = escape_json(data)
    assert "<" not in escaped and "\u2028" not in escaped
    assert json.loads(escaped) == data


@pytest.mark.parametrize("text", ["\ud800", "\udfff\ud800", "a\udcffé\U0001f408"])
def test_escaped_json_with_lone_surrogates_is_utf_8(text):
    assert json.loads(escape_json({text: text}).encode("utf-8")) == {text: text}
