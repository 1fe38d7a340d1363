"""The phrases, markup and commands by which a text is known to instruct its reader.

Each line is a regular expression, looked for in plain text (`screening.plain`): lower case, one blank between words.
`<name>` stands for an entry of a word list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# --- phrases and markup ---------------------------------------------------------------------------------------------

_WORDS: Mapping[str, str] = {
    "rules": r"""(?:instructions?|directions?|directives?|guidance|prompts?|rules?(?! of thumb)|guidelines?|guardrails?
        |polic(?:y|ies)|commands?|constraints?|restrictions?|programming|training|system message)\b""",
    "past": r"""(?:prev(?:ious)?|prior|above|earlier|preceding|former|initial|original|existing|foregoing|your|system
        |safety|developer(?:'s)?|operator(?:'s)?|company|these|all the|all of the)""",
    "drop": r"""\b(?:ignore|disregard|forget|discard|override|overrule|overlook|bypass|neglect|circumvent|set aside
        |pay no attention to|throw away)""",
    "obey": r"""(?:have to |need to )?(?:follow(?:ing)?|obey(?:ing)?|heed(?:ing)?|comply with|listen to|adhere to
        |respect|observe)""",
    "say": r"""\b(?:reveal|print|repeat|output|show|display|disclose|leak|tell me|give me|write out|recite|expose|list
        |quote|dump)\b""",
    "send": r"\b(?:send|post|upload|forward|e-?mail|transmit|leak|submit|append|copy|deliver|add|pipe)\b",
    "own": r"""(?:\b|\$)(?:api keys?|keys?|passwords?(?! reset)|secrets?|(?:access |session )?tokens?|credentials?|ssh
        |environment variables?|[\w$]*(?:api_key|access_key|secret_key|_token|_secret|_password)|conversation
        |chat history|memory|memories|system prompt|(?:credit )?card numbers?|cookies?)\b""",
    "there": r"(?:https?://|\b(?:\d{1,3}\.){3}\d|[\w+-][\w.+-]{0,60}@[\w-]{1,60}\.\w)",
    "not": r"\b(?:do not|don't|never|must not)",
    "person": r"(?:the |your )?(?:user|operator|human|owner|developer)s?",
    "few": r"(?:[\w']+\W+){0,3}?",
    "free": r"(?:\w+ )?(?:restrictions?|limits|filters?|censorship|guidelines|morals|ethics)\b",
    "aged": r"(?:previous |earlier |prior |old |original |real |true |actual )",
    "ruled": r"(?:instructions|rules|guidelines|guidance|policies|safety checks?|safety filters?)",
    "void": r"(?:void|outdated|invalid|replaced|cancell?ed|revoked|superseded|suspended|lifted|below|off|disabled)",
    "personas": r"""(?:dan|jailbroken|unrestricted|unfiltered|uncensored|developer mode|god mode|ai|assistant|chatbot
        |language model|evil\w*|\w*-?gpt|root)""",
    "open": r"(?:public|commit|answer|url|output|issue|wiki|response)",
    "passed": r"""(?:the tests?|they|it|everything|all tests|success)(?: have| has| were)?(?: passed| pass\b| succeeded
        |\b)""",
    "turned": r"(?:you (?:are|will|must|shall)|act|behave|pretend|obey)",
    "own rules": r"(?:instructions|prompt|rules(?! of thumb)|guidelines|configuration|context window)",
    "put": r"\b(?:include|put|write|insert|embed|paste|publish)\b",
    "do": r"\b(?:call|invoke|run|execute|delete|push|transfer|pay|grant)\b",
    "anyhow": r"\b(?:whatever|regardless|even if|no matter|disable|delete|skip)\b",
    "tell": r"(?:tell|inform|notify|alert)(?:ing)?",
    "learn": r"(?:learn|know|notice|find out|be told|be informed)",
    "前": r"(?:之前|以上|上面|前面|先前|此前|原来|所有|全部|一切|系统|你)",
}

PHRASES: Mapping[str, str] = {
    "override": r"""
<drop>\W+<few><past>\W+<few><rules>
<drop> (?:all|any|every|the) (?:instructions|rules|guidelines)(?! (?:in|of|for|behind)\b)
<drop> (?:the )?system (?:message|prompt)
<drop> (?:everything|anything|all|what(?:ever)?) (?:that |of what )?(?:guidance )?(?:you|i|was|were|above|before)\b
<drop> (?:\w+ ){0,3}?(?:the )?user (?:asks?|asked|says|said|wants?|wanted|requests?)\b
\b(?:your|the|all) <aged>?<ruled>.{0,25}? (?:are|is|have been|were) (?:now )?<void>\b(?! (?:in|to|for) the)
\b(?:your|all) <aged>?<ruled>.{0,25}? (?:do not|don't|no longer) apply\b
\bsafety (?:checks?|filters?|rules|measures) (?:are|is) (?:now )?(?:off|disabled|suspended|lifted)\b
\byour (?:real|true|actual|new) (?:instructions|role|goal|purpose|mission|objective) (?:is|are)\b
\bnew (?:system )?(?:instructions?|prompt|directives?|orders?):
\bi (?:hereby )?(?:order|command|instruct|authori[sz]e) you\b
\b(?:message|note|order|command|instruction)s? from your (?:developer|creator|maker|operator|administrator)s?\b
\bignor(?:ez|iere|a)\b[^.]{0,30}?(?:instructions précédentes|vorherigen anweisungen|instrucciones anteriores)
(?:忽略|无视|忽视|忘记|忘掉|抛弃|绕过)(?!了)[^。！？]{0,10}?<前>[^。！？]{0,10}?(?:指令|指示|提示词|规则|规定|限制|设定|要求)
<前>[^。]{0,6}?(?:规定|规则|指令|指示)[^。]{0,6}?(?:作废|无效|取消|失效)
新的?系统(?:指令|提示词?)[::]
""",
    "persona": r"""
\byou(?: are|'re) (?:now|henceforth) (?:an? |the |in |operating as )?(?:\w+\W+){0,3}?<personas>\b
\bfrom (?:now on|this moment(?: on)?|here on),? <turned>\b(?! (?:see|find|need))
\byou (?:will|must|shall) from (?:now|this moment) on\b
\b(?:pretend|imagine|act as (?:if|though)) (?:that )?you (?:are|were|have|had) (?:\w+ ){0,3}?<free>
\b(?:pretend|imagine|act as (?:if|though)) (?:that )?you (?:are|were) (?:\w+ ){0,3}?(?:administrator|admin|root|dan)\b
\b(?:role-?play|pose|behave) as (?:an? )?(?:\w+ )?(?:ai|assistant|bot|model|hacker)\b
\b(?:enter|enable|activate|switch (?:in)?to) (?:the )?(?:god|dan|jailbreak|unrestricted) mode\b
\b(?:answer|respond|reply|act|ai|assistant|hacker|model)\b[^.]{0,40}?\bwithout (?:any )?<free>
\b(?:obey|comply with) (?:only|this|me\b|every|all|any)\b
你现在是(?!在)[^。]{0,16}?(?:人工智能|助手|模型|机器人|管理员|ai|没有|不受)
从(?:现在|此刻|今)(?:开始|起)[,,]?(?:你(?:将|是|要|必须)|只听)
""",
    "asks for its prompt": r"""
<say>[^.!?]{0,40}?(?:system prompt|the system message|initial (?:instructions|prompt)|(?:everything|text) above)
<say>[^.!?]{0,40}?(?:your|hidden|secret) (?:\w+ )?<own rules>
\bwhat (?:are|were|is) your (?:\w+ )?(?:instructions|rules|system prompt)\b
(?:输出|打印|泄露|透露|告诉我|显示|重复|复述)[^。]{0,10}?(?:系统提示词?|你的提示词|初始指令|系统指令|隐藏的?规则)
(?:把|将)[^。]{0,8}?(?:初始指令|系统提示词?|系统指令)[^。]{0,10}?(?:告诉|输出|发)
""",
    "exfiltration": r"""
<send>.{0,80}?<own>.{0,80}?\b(?:to|at|into)\b.{0,30}?<there>
<send>.{0,40}?\.env\b.{0,30}?\bto\b.{0,30}?<there>
<own>.{0,40}?<send> (?:it|them|this|that)\b.{0,20}? to .{0,30}?<there>
\bexfiltrate\b.{0,40}?<own>
<put>[^.!?]{0,40}?<own>[^.!?]{0,20}? (?:in|into|to|on) (?:every|each|all|your|(?:the |a )?<open>)\b
!\[[^\]]{0,80}\]\(https?://[^)\s]{1,200}[?&][^)\s]{0,200}=
\b(?:cat|type|read|print) .{0,20}?(?:~/\.ssh|id_rsa|/etc/shadow|\.aws/credentials)
(?:密钥|密码|令牌|凭证|口令|环境变量|对话记录|聊天记录|token|cookie|\.env)[^。]{0,30}?(?:发送|上传|发给|发到|转发|提交)[^。]{0,12}?<there>
""",
    "remote code": r"""
\b(?:curl|wget|iwr)\b[^|;]{0,200}\| ?(?:sudo )?(?:(?:ba|z|da)?sh|python3?)\b
\bnc\b.{0,20}? -e\b
/dev/tcp/
\bexec\(.{0,20}?urlopen
\b(?:add|append|echo|write)\b.{0,80}?authorized_keys
""",
    "acts unasked": r"""
<do>[^.]{0,60}? without (?:asking|confirmation|approval|review)\b
<do>[^.]{0,60}?[,;] (?:do not|don't) ask\b
(?:删除|转账|付款|支付|发送|执行|授权)[^。]{0,20}?(?:不要|无需|不必|不用)(?:询问|征求|请示)
""",
    "false report": r"""
<anyhow>[^.]{0,60}?\b(?:report|say|claim|state)\b (?:that )?<passed>
""",
    "speaks to its reader": r"""
\b(?:agents?|assistants?|ai|llm|whoever|anyone who) (?:that )?(?:reads?|reading) this\b
\bwhen this (?:lesson|memory|text) is (?:shown|read|recalled|retrieved|loaded)\b
""",
}
"""By flag. A match after "never" or in a quotation does not count."""

FORBIDS: Mapping[str, str] = {
    "override": r"""
(?:<not>|\bstop|\bcease|\bno longer|\brefuse to) <obey>\W+<few><past>\W+<few><rules>
(?:不要|不再|不必|无需|停止|不用)再?(?:遵守|遵循|服从|理会|听)[^。！？]{0,8}?(?:<前>|开发者|用户)[^。！？]{0,8}?(?:提示|指令|规则|要求|的话)
""",
    "concealment": r"""
(?:<not>|\bwithout) (?:ever )?<tell> <person>(?: (?:about|of) (?:this|it|these)\b|\s*(?:[,;.!]|$)| and\b)
\b<person> (?:must|should|may|shall) (?:not|never) <learn>(?: (?:of|about|that))? (?:this|it)\b
\bnever mention this\b
\b(?:hide|conceal|keep) this (?:\w+ )?(?:a )?(?:secret )?from the\b
<not> (?:log|report|record|disclose)(?: or \w+)? (?:this|these) (?:action|change|step|call|transfer|instruction)s?\b
(?:不要|别|切勿|无需)(?:告诉|告知|通知)(?:用户|操作员|主人)(?:这|此|[,。!;,]|$)
(?:不要|别|切勿|无需)让(?:用户|操作员|主人)(?:知道|发现)
""",
}
"""By flag: phrases that count because they forbid something."""

MARKUP: Mapping[str, str] = {
    "role tags": r"""
<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>
\[\[(?:system|user|assistant)\]\]
</?system[-_](?:reminder|prompt|message|instructions?)>|<assistant>|</?(?:system|user)>\s{0,9}<(?:system|user)>
(?:^|\n)[ \t]*(?:\[SYSTEM\]|#{2,4} ?(?:system|instructions?) ?:)
(?:^|\n)[ \t]*(?-i:SYSTEM) ?:
(?:^|\n)[ \t]*(?:human|user) ?:[^\n]{0,500}\n\s{0,9}assistant ?:
""",
    "tool call": r"""
</?(?:tool_calls?|function_calls?|invoke|tool_use|tool_code|tool_response)\b[^>]{0,80}>
(?:^|\n)[ \t]*Action ?:[^\n]{1,100}\n[ \t]*Action Input ?:
\{\s{0,9}"(?:name|tool|function)"\s{0,9}:\s{0,9}"[^"]{1,64}"\s{0,9},\s{0,9}"(?:arguments|parameters|input|args)"\s{0,9}:
""",
    "hidden text": r"""
<!--[^>]{0,400}?\b(?:ai|agents?|assistant|llm|ignore|instructions?)\b[^>]{0,400}?-->
""",
}
"""By flag: looked for in the text as it stands, in any case. A match in a short code span does not count."""


# --- commands that reach beyond the workspace: they look alike in every language -----------------------------------

COMMAND_WORDS: Mapping[str, str] = {
    "far": r"(?:https?|ftp|git|ssh)://(?!localhost\b|127\.|0\.0\.0\.0|\[::1\])",
    "opts": r"(?:-{1,2}[\w-]+(?:=\S+)? ){0,5}",
    "rest": r"[^;&|。]{0,160}?",
    "root": r"[\"']?(?:/(?!tmp/\w|workspace/\w|dev/shm/\w)|~|\$\{?home\b|%userprofile%|[a-z]:\\)",
    "amount": r"""(?:(?:us)?[$€£¥₽] ?\d[\d.,]{0,15}|\d[\d.,  ]{0,15}(?:[$€£¥₽]|usd\b|eur\b|gbp\b|btc\b|eth\b
        |usdt\b|us-dollar|dollars?\b|dólares|euros?\b|pounds\b|francs\b|долл|евро|рубл|ドル|ユーロ|円|美元|欧元|元|块))""",
    "account": r"""(?:\b[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){3,7}(?: ?[a-z0-9]{1,4})?\b|\bbc1[a-z0-9]{20,60}\b
        |\b0x[0-9a-f]{40}\b|(?<!\d)\d{16,24}(?!\d)|\biban\b)""",
    "pay": r"""(?:transfer|send|pay|wire|donate|buy|purchase|tip|virez|transférez|payez|envoyez|versez|achetez
        |überweise|überweis|bezahle|zahle|sende|kaufe|transfiere|paga|envía|deposita|compra
        |переведи(?:те)?|оплати(?:те)?|заплати(?:те)?|отправь(?:те)?|купи(?:те)?)""",
    "begins": r"(?:^|[.;:!?,] |\b(?:first|then|please|always|d'abord|zuerst|immer|primero|nada|сначала|началом) )",
}

COMMANDS: Mapping[str, str] = {
    "foreign code": r"""
\bpip\d?(?:\.\d+)? (?:install|download|wheel)\b<rest> (?:-i|-f|--index-url|--extra-index-url|--find-links)[ =]\S
\bpip\d? (?:install|download)\b<rest>(?: --trusted-host\b|(?:git\+|hg\+)?<far>)
\buvx? <rest>(?:--(?:default-)?index|--index-url|--from)[ =]\S{0,10}?<far>
\b(?:npm|pnpm|yarn|bun)\b<rest>(?:--registry[ =]|\bregistry <far>|(?:install|add|i) <opts>(?:git\+)?<far>)
\b(?:npx|bunx|dlx) <opts><far>
\b(?:cargo|go|gem) (?:install|get)\b<rest>(?:--(?:git|source|index|registry)[ =]|<far>)
\b(?:add-apt-repository|brew tap|docker load|helm repo add) \S
\bgit (?:clone|submodule add|remote add|pull|fetch)\b<rest>(?:<far>|git@)
\b(?:curl|wget|aria2c|iwr|irm|invoke-webrequest|invoke-restmethod)\b<rest><far>
\b(?:ba|z|da)?sh (?:-c )?["']?[<$]\( ?(?:curl|wget)\b
\biex\b.{0,20}?\b(?:iwr|irm|curl|downloadstring)\b
\bexec\(.{0,60}?(?:urlopen|requests\.get|httpx\.get)
""",
    "payment": r"""
<amount>.{0,80}?<account>
<account>.{0,80}?<amount>
<begins><pay>\b[^.!?。]{0,40}?<amount>
<amount>[^.!?。]{0,30}?(?:送金|支払|振り?込|払って|转账|付款|汇款)
(?:转账|付款|支付|汇款|转给|打款)[^。!?]{0,20}?<amount>
""",
    "deletes outside": r"""
\brm (?:-{1,2}[\w-]+ ){1,4}<root>
\bfind <root>\S* <rest>(?:-delete\b|-exec rm\b)
\bdd\b<rest>\bof=/dev/(?!null\b|stdout\b)
\bmkfs(?:\.\w+)? <opts>/dev/
(?:^|[^>])> ?/dev/(?:sd|nvme|hd|vd)[a-z0-9]
\b(?:del|rmdir|rd) (?:/\w ){1,4}<root>
\bremove-item\b<rest><root>
\brmtree\(["'](?:/(?!tmp/\w)|~)
\bshred\b<rest>/dev/
:\(\) ?\{ ?:\|:& ?\}
""",
    "widens rights": r"""
\bchmod <opts>(?:-\w{1,8}?)?["']?(?:0?777|0?666|[ugoa]*[+=]rwx|[oa]\+\w*w\w*)\b
\bchmod <opts>(?:[ug]{1,2}\+s|[2-7][0-7]{3})\b
\b(?:chmod|chown) -\w*r\w* \S+ <root>(?: |$)
\bnopasswd\b|/etc/sudoers\b|\bvisudo\b
\bsudo <opts>(?:su|bash|sh|zsh|chmod|chown|rm|passwd|usermod|useradd|adduser|tee|mount|dd|iptables|setcap)\b
\bsudo <opts>(?:pip\d?|curl|wget)\b
\busermod\b<rest>-\w*g \S{0,40}(?:sudo|wheel|docker|root)\b
authorized_keys.{0,40}?ssh-(?:rsa|ed25519|dss)|>> ?\S{0,40}authorized_keys
ssh-(?:rsa|ed25519|dss) \S{12}.{0,120}?authorized_keys
\badministratoraccess\b|\biamfullaccess\b|\broles/(?:owner|editor)\b|\bcluster-admin\b|"action" ?: ?"\*"
\bsslverify[ =]+["']?(?:false|0|no)\b|\bnode_tls_reject_unauthorized ?= ?["']?0|\bpythonhttpsverify ?= ?["']?0
\bcurl\b[^;&|]{0,80}?(?: -\w*k\w*\b| --insecure\b)|--no-check-certificate\b|\bverify ?= ?false\b
\bstrict-ssl (?:=|false)
\bstricthostkeychecking[ =]+no\b|_create_unverified_context
\bufw disable\b|\biptables (?:-f|--flush)\b|\bsetenforce 0\b|\bset-mppreference\b|\badvfirewall\b.{0,40}?\boff\b
\bsystemctl (?:stop|disable|mask) <opts>(?:firewalld|ufw|apparmor|auditd|iptables)\b
""",
}
"""By flag."""

# --- compiling ------------------------------------------------------------------------------------------------------


def compiled(
    table: Mapping[str, str], flags: re.RegexFlag = re.NOFLAG, words: Mapping[str, str] = _WORDS
) -> list[tuple[str, re.Pattern[str]]]:
    """Each line of a table with its flag."""
    return [
        (flag, re.compile(_filled(line, words), flags))
        for flag, lines in table.items()
        for line in lines.split("\n")
        if line
    ]


def _filled(line: str, lists: Mapping[str, str]) -> str:
    for name, words in lists.items():
        line = line.replace(f"<{name}>", re.sub(r"\n\s+", "", words))
    return line
