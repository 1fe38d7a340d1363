import importlib.util
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from each_row import each_row
from pydantic_ai.models import create_async_httpx2_client

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Model
from mulligan.models.catalog import found_keys, open_embedder, open_model
from mulligan.models.provider import ProviderModel
from mulligan.models.providers import PROVIDERS, Access
from mulligan.models.settings import CallSettings
from mulligan.tools.http_get import HttpGet


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for provider in PROVIDERS.values():
        for variable in (*provider.keys, *provider.url):
            monkeypatch.delenv(variable, raising=False)


@each_row(
    ("name", "says"),
    [
        (
            "openai:gpt-4o",
            "openai:gpt-4o needs a key: set OPENAI_API_KEY, or use a model that needs none (model='local').",
        ),
        ("anthropic:claude-haiku-4-5", "set ANTHROPIC_API_KEY"),
        ("alibaba:qwen-plus", "set ALIBABA_API_KEY or DASHSCOPE_API_KEY"),
        ("groq:llama", "run  pip install 'pydantic-ai-slim[groq]'"),
        ("bedrock:amazon.nova", "pip install"),
        ("openai", "openai is a provider: write openai:MODEL, such as openai:gpt-6-luna."),
        ("openai:", "openai is a provider"),
        ("gpt-6-astra", "Did you mean openai:gpt-6-astra?"),
        ("claude-haiku-45", "Did you mean anthropic:claude-haiku-4-5?"),
        ("", "No model is called ''."),
        ("scripted", "write scripted:FILE"),
        ("replay:", "write replay:FILE"),
        ("scripted:there/is/none.txt", "scripted:there/is/none.txt cannot be read: No such file or directory."),
    ],
)
def test_what_is_wrong_is_reported_in_one_line_that_mends_it(name: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_model(name)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_provider_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"called 'opnai'\. Did you mean 'openai'"):
        open_model("opnai:gpt-4o")


def test_a_provider_that_only_pydantic_ai_knows_says_what_it_lacks() -> None:
    with pytest.raises(InvalidInput, match=r"azure:gpt-4o is not set up: set AZURE_OPENAI_\w+"):
        open_model("azure:gpt-4o")


def test_opening_a_model_imports_nothing_and_calls_nobody() -> None:
    code = (
        "import sys; from mulligan.models.catalog import open_model; "
        "open_model('openai:gpt-4o'); open_model('anthropic:claude-haiku-4-5'); open_model('ollama:qwen3'); "
        "print(sorted({'pydantic', 'pydantic_ai', 'openai', 'anthropic', 'genai_prices', 'httpx2'} & set(sys.modules)))"
    )
    env = {**os.environ, "OPENAI_API_KEY": "sk-none-at-all", "ANTHROPIC_API_KEY": "sk-none-at-all"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"


def complaint(make: Callable[[], object]) -> str:
    """What stands in the way, in pydantic-ai's words or ours; nothing when it works."""
    from pydantic_ai.exceptions import UserError

    try:
        make()
    except (ImportError, UserError, InvalidInput) as error:
        return str(error)
    return ""


def importable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        return False


@each_row("name", PROVIDERS)
def test_the_table_says_what_pydantic_ai_wants(name: str) -> None:
    from pydantic_ai.providers import infer_provider_class

    provider = PROVIDERS[name]
    if not importable(provider.package):
        assert f"pydantic-ai-slim[{provider.extra}]" in complaint(lambda: infer_provider_class(name))
        return
    made = infer_provider_class(name)
    assert ("base_url" in inspect.signature(made.__init__).parameters) == bool(provider.url)
    wants = complaint(made)
    assert any(variable in wants for variable in (*provider.keys, *provider.url))


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_of_the_table_can_be_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = PROVIDERS[name]
    monkeypatch.setenv(provider.keys[0], "sk-none-at-all")
    if not importable(provider.package):
        assert "pip install" in complaint(lambda: open_model(f"{name}:{provider.example}"))
        return
    model = open_model(f"{name}:{provider.example}")
    assert isinstance(model, ProviderModel)
    assert model.load().model_name == provider.example


def test_a_base_url_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    model = open_model("openai:qwen2.5", settings=CallSettings(base_url="http://127.0.0.1:9/v1"))
    assert isinstance(model, Model)
    assert (model.name, model.id) == ("openai:qwen2.5", "openai:qwen2.5")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    with pytest.raises(InvalidInput, match="set OPENAI_API_KEY"):
        open_model("openai:gpt-4o")


def test_the_key_can_stand_in_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = CallSettings(key="MY_KEY")
    with pytest.raises(InvalidInput, match="openai:gpt-4o needs a key: set MY_KEY"):
        open_model("openai:gpt-4o", settings=settings)
    monkeypatch.setenv("MY_KEY", "sk-none-at-all")
    assert open_model("openai:gpt-4o", settings=settings).name == "openai:gpt-4o"


def test_a_base_url_where_there_can_be_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-none-at-all")
    with pytest.raises(InvalidInput, match="deepseek does not support a base URL: write openai:deepseek-v4-pro"):
        open_model("deepseek:deepseek-v4-pro", settings=CallSettings(base_url="http://127.0.0.1:9/v1"))


def test_keys_that_are_there_are_found_with_a_model_that_would_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_keys() == []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all")
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-none-at-all")
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")
    assert found_keys() == [("OPENAI_API_KEY", "openai:gpt-6-luna"), ("DASHSCOPE_API_KEY", "alibaba:qwen-plus")]


def test_the_key_is_not_in_the_models_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Access("OPENAI_API_KEY", "sk-secret-secret", "https://me:hunter2@host/v1")
    assert repr(secret) == "Access(variable='OPENAI_API_KEY', key=[secret masked], base_url='https://host/v1')"
    assert secret.secrets == ("sk-secret-secret", "hunter2")


def test_settings_come_from_a_table() -> None:
    assert CallSettings.parse({"timeout": 60, "parallel": 2}) == CallSettings(timeout=60, parallel=2)
    with pytest.raises(UnknownName, match=r"called 'time_out'\. Did you mean 'timeout'"):
        CallSettings.parse({"time_out": 60})


@each_row(
    ("table", "says"),
    [
        ({"timeout": 0}, "'timeout' must be more than 0"),
        ({"timeout": "60"}, "'timeout' must be a number"),
        ({"timeout": float("inf")}, "'timeout' must be a number"),
        ({"timeout": None}, "'timeout' must be a number"),
        ({"attempts": 2.5}, "'attempts' must be an integer"),
        ({"attempts": True}, "'attempts' must be an integer"),
        ({"base_url": "localhost:8000"}, "must begin with http"),
        ({"base_url": 7}, "must be a string"),
        ({"input_price": 1.0}, "Set both"),
        ({"input_price": -1.0, "output_price": 1.0}, "'input_price' must be more than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(table: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        CallSettings.parse(table)


def test_a_model_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not valid UTF-8"):
        open_model(f"scripted:{tmp_path / 'a.txt'}")


PROXIES = (
    "::::",
    "http://:::",
    "localhost:99999",
    "http://[::1",
    "foo://host:1",
    "http://u:p4ssw0rd@:bad",
    " http://h:1",
)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("proxy", PROXIES)
def test_a_malformed_proxy_is_named_before_any_call(monkeypatch: pytest.MonkeyPatch, variable: str, proxy: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all")
    monkeypatch.setenv(variable, proxy)
    said = rf"^The proxy in the variable {variable} cannot be used: '.*'\. Set it to http://HOST:PORT, or unset it\.$"
    for open_one in (open_model, open_embedder):
        with pytest.raises(InvalidInput, match=said) as refused:
            open_one("openai:gpt-4o")
        assert "p4ssw0rd" not in str(refused.value)
    with pytest.raises(InvalidInput, match=said):
        HttpGet(hosts=["localhost:8000"])


@pytest.mark.parametrize("proxy", ["127.0.0.1:9", "user:pw@host:1", "http://host", "HTTP://host:1", "http://[::1]:80"])
def test_a_proxy_that_the_client_takes_is_no_error(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all")
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    open_model("openai:gpt-4o")
    create_async_httpx2_client()


def test_a_socks_proxy_says_which_package_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all")
    monkeypatch.setenv("ALL_PROXY", "socks5://host:1")

    def found(package: str) -> object:
        return None if package == "socksio" else importlib.util.find_spec(package)

    monkeypatch.setattr("mulligan.models.providers.find_spec", found)
    with pytest.raises(InvalidInput, match=r"ALL_PROXY, 'socks5://host:1', needs a package: pip install socksio$"):
        open_model("openai:gpt-4o")
    monkeypatch.setenv("NO_PROXY", "localhost, *")
    open_model("openai:gpt-4o")


@each_row(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("gpt4o", "openai:gpt4o"),
        ("o3", "openai:o3"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-sonnet-4", "anthropic:claude-sonnet-4"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("qwen-plus", "alibaba:qwen-plus"),
        ("qwen3-coder", "ollama:qwen3-coder"),
        ("deepseek-chat", "deepseek:deepseek-chat"),
        ("deepseek-r1", "ollama:deepseek-r1"),
        ("mistral-large-latest", "mistral:mistral-large-latest"),
        ("llama3.1", "ollama:llama3.1"),
        ("llama3.1:8b", "ollama:llama3.1:8b"),
        ("gpt-oss:20b", "ollama:gpt-oss:20b"),
        ("meta-llama/Llama-3", "openrouter:meta-llama/Llama-3"),
    ],
)
def test_a_model_without_its_provider_is_answered_with_one_that_has_it(name: str, meant: str) -> None:
    said = complaint(lambda: open_model(name))
    assert said == f"The model {name!r} needs its provider. Did you mean {meant}?"


@pytest.mark.parametrize("name", ["smollm2-135m", "mine.gguf"])
def test_weights_without_local_are_answered_with_it(name: str) -> None:
    assert complaint(lambda: open_model(name)) == f"The model {name!r} runs inside Mulligan: write local:{name}."
