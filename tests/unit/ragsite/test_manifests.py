"""deploy/kubernetes: manifests that Kubernetes takes, and that run what the Procfile runs."""

import re
import shlex

import kubernetes_validate
import pytest
import yaml
from django.conf import settings

FOLDER = settings.BASE_DIR / "deploy" / "kubernetes"
# The oldest that its makers still mend when this was written.
VERSION = "1.33"


def manifests():
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name != "kustomization.yaml":
            for manifest in yaml.safe_load_all(path.read_text()):
                yield f"{path.name}-{manifest['kind']}", manifest


MANIFESTS = dict(manifests())


@pytest.mark.parametrize("name", MANIFESTS)
def test_kubernetes_takes_it(name):
    kubernetes_validate.validate(MANIFESTS[name], VERSION, strict=True)


def test_they_run_what_the_procfile_runs():
    commands = dict(line.split(": ", 1) for line in (settings.BASE_DIR / "Procfile").read_text().splitlines())
    run = {
        container["name"]: container["command"]
        for manifest in MANIFESTS.values()
        if manifest["kind"] == "Deployment"
        for container in manifest["spec"]["template"]["spec"]["containers"]
    }
    workers = {name: shlex.split(command) for name, command in commands.items() if "--queues" in command}
    assert {name: command for name, command in run.items() if "--queues" in command} == workers
    composed = yaml.safe_load((settings.BASE_DIR / "compose.yaml").read_text())["services"]
    assert {name: shlex.split(composed[name]["command"]) for name in workers} == workers
    taken = [queue for command in workers.values() for queue in command[command.index("--queues") + 1].split(",")]
    assert sorted(taken) == sorted(queue.name for queue in settings.CELERY_TASK_QUEUES), "each by one worker"
    assert workers["documents"][workers["documents"].index("--queues") + 1] == "documents", "it is kept for them"
    # In the image the address is a variable of the environment.
    assert run["web"] == shlex.split(commands["web"].replace("--bind $HOST:$PORT", "--graceful-timeout 35"))
    assert run["scheduler"] == shlex.split(commands["beat"])


def test_their_settings_are_settings_and_their_parts_are_there():
    known = set(re.findall(r"^#?([A-Z0-9_]+)=", (settings.BASE_DIR / ".env.example").read_text(), re.M))
    given = {*MANIFESTS["settings.yaml-ConfigMap"]["data"], *MANIFESTS["secrets.example.yaml-Secret"]["stringData"]}
    # Amazon's own tools have the same names for these.
    assert given <= known | {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3"}
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    assert all((FOLDER / name).exists() for name in kustomization["resources"])
