"""examples/server: what can be checked of an image, a compose file and a manifest without a daemon."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from serving import MULLIGAN, Running

from mulligan.cli.serve import serve
from mulligan.cli.store import setup
from mulligan.store import is_local, parse_address
from mulligan.web.tokens import METRICS_VARIABLE, VARIABLE

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "server"


def dockerfile() -> dict[str, list[str]]:
    """The arguments of each instruction, continued lines joined."""
    found: dict[str, list[str]] = {}
    text = "\n".join(line for line in (FOLDER / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            found.setdefault(name, []).append(rest)
    return found


def command() -> list[str]:
    image = dockerfile()
    return [*json.loads(image["ENTRYPOINT"][0]), *json.loads(image["CMD"][0])]


def compose(file: str = "compose.yaml") -> dict[str, Any]:
    return yaml.safe_load((FOLDER / file).read_text())


def manifests() -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())}


def test_the_command_of_the_image_is_one_of_ours() -> None:
    given = command()
    assert given[:2] == ["mulligan", "serve"]
    options = serve.make_context("serve", given[2:]).params
    assert (options["host"], options["port"], options["metrics"], options["log_json"]) == ("0.0.0.0", 8000, True, True)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("token", [False, True])
def test_the_command_of_the_image_serves_with_a_token_alone(token: bool) -> None:
    arguments = [*command()[2:], "--port", "0"]
    env = {VARIABLE: "a-token-of-16-characters"} if token else {}
    with Running([*MULLIGAN, *arguments], env, None, -3, -3).closing() as server:
        if token:
            server.wait_until_said("Serving MCP at")
            assert server.stop() == 0
        else:
            assert server.ended() == 2
            assert VARIABLE in server.said()


def test_the_image_is_built_from_wheels_and_runs_as_nobody_in_particular() -> None:
    image = dockerfile()
    (install,) = (one for one in image["RUN"] if "pip install" in one)
    assert "--no-index" in install
    assert "--find-links /wheels" in install
    assert image["COPY"] == ["wheels /wheels"]
    extras = re.findall(r'"mulligan\[([\w,]+)\]"', install)[0].split(",")
    assert (
        set(extras) <= tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    )
    assert image["USER"] == ["10001"]
    assert "MULLIGAN_HOME=/data" in image["ENV"][0]
    assert image["VOLUME"] == ["/data"]


def test_the_compose_file_keeps_the_store_and_asks_for_tokens() -> None:
    file = compose()
    (service,) = file["services"].values()
    assert {VARIABLE, METRICS_VARIABLE, "MULLIGAN_OTEL"} <= service["environment"].keys()
    assert all(":?" in service["environment"][name] for name in (VARIABLE, METRICS_VARIABLE))
    assert service["volumes"] == ["data:/data"]
    assert "data" in file["volumes"]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")
    assert int(service["stop_grace_period"].rstrip("s")) > serve.make_context("serve", []).params["drain"]


def test_several_servers_share_a_database_behind_a_balancer() -> None:
    services = compose("several.yaml")["services"]
    assert set(services) == {"database", "setup", "mulligan", "balancer"}
    words = services["setup"]["entrypoint"] + services["setup"]["command"]
    context = setup.make_context("setup", words[3:])
    served = services["mulligan"]
    address = served["environment"]["MULLIGAN_STORE"]
    assert address == context.params["address"].replace("postgres@", f"{context.params['role']}@")
    assert parse_address(address)[0] == "postgresql"
    assert not is_local(address), "so the servers give no sessions"
    assert served["deploy"]["replicas"] > 1
    assert ":?" in served["environment"][VARIABLE]
    assert int(served["stop_grace_period"].rstrip("s")) > serve.make_context("serve", []).params["drain"]
    nginx = (FOLDER / "nginx.conf").read_text()
    assert services["balancer"]["volumes"] == ["./nginx.conf:/etc/nginx/nginx.conf:ro"]
    assert services["balancer"]["ports"] == [f"127.0.0.1:8000:{re.findall(r'listen (.*);', nginx)[0]}"]
    listens = serve.make_context("serve", command()[2:]).params["port"]
    assert f"server mulligan:{listens} " in nginx


def test_the_manifest_has_one_server_on_one_file_and_its_parts_fit() -> None:
    found = manifests()
    assert set(found) == {"PersistentVolumeClaim", "Deployment", "Service"}
    deployment, pod = found["Deployment"]["spec"], found["Deployment"]["spec"]["template"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    labels = pod["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels == found["Service"]["spec"]["selector"]
    (container,) = pod["spec"]["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["spec"]["volumes"]}
    claims = [
        one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one
    ]
    assert claims == [found["PersistentVolumeClaim"]["metadata"]["name"]]
    assert {one["name"] for one in container["env"]} == {VARIABLE, METRICS_VARIABLE}
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"http": 8000}
    assert container["livenessProbe"]["tcpSocket"]["port"] in ports
    assert found["Service"]["spec"]["ports"][0]["targetPort"] in ports
    assert pod["spec"]["securityContext"]["runAsUser"] == 10001
