"""Commands in a lesson that reach beyond its workspace, known by their shape: they look alike in every language.

A line is a regular expression, looked for in plain text (`signs.plain`): lower case, one blank between words. `<name>`
stands for a word list below, as in `signs_known`.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
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
