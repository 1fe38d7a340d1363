"""Secrets as shells, tools, code and configuration files show them, drawn by lot: the secret, and a text that holds it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random

from secret_kinds import ALNUM, HEX, b64, some, within

_WORDS = ("acorn", "bamboo", "canyon", "dolphin", "ember", "fjord", "glacier", "harbor", "island", "jungle", "kernel")


def phrase(chance: Random, n: int) -> str:
    """n words, as in a wallet or a pass phrase."""
    return " ".join(chance.choice(_WORDS) for _ in range(n))


def signs(chance: Random, n: int) -> str:
    """Letters, digits and the signs that password generators take."""
    return some(chance, n - 2) + chance.choice("!@#^*+=?~") + chance.choice(ALNUM)


def bare(chance: Random, n: int) -> str:
    """Letters and digits as they fall: one of sixteen in sixteen characters has no digit."""
    return "".join(chance.choice(ALNUM) for _ in range(n))


def url(chance: Random, n: int) -> str:
    return base64.urlsafe_b64encode(chance.randbytes(n)).decode().rstrip("=")


def login(chance: Random) -> str:
    return base64.b64encode(f"ann:{some(chance, 12)}".encode()).decode()


def _numbered(words: list[str]) -> tuple[str, str]:
    return words[3], "Recovery phrase:\n" + "\n".join(f"{n}. {word}" for n, word in enumerate(words, 1))


TERMINAL: dict[str, Callable[[Random], tuple[str, str]]] = {
    # tables, and what programs print or store
    "csv": lambda c: within(some(c, 10), "id,user,password,role\n1,ann,{},admin\n"),
    "psql table": lambda c: within(some(c, 12), " name | passwd\n------+--------\n ann  | {}\n(1 row)"),
    "tabs": lambda c: within(some(c, 24), "user\tapi_token\nann\t{}\n"),
    "terraform output": lambda c: within(
        some(c, 16), '{{"db_password": {{"sensitive": true, "type": "string", "value": "{}"}}}}'
    ),
    "ssm": lambda c: within(some(c, 14), '{{"Name": "/prod/db_password", "Type": "SecureString", "Value": "{}"}}'),
    "base64 between lines": lambda c: within(some(c, 22) + "=", "data:\n  password: {}\n  username: YW5u\n"),
    "gh secret": lambda c: within(some(c, 24), "gh secret set DEPLOY --body {}"),
    "keyvault": lambda c: within(some(c, 24), "az keyvault secret set --vault-name v --name n --value {}"),
    "from-literal, any name": lambda c: within(
        some(c, 24), "kubectl create secret generic pay --from-literal=stripe={}"
    ),
    "vault kv put": lambda c: within(some(c, 16), "vault kv put secret/app pin={}"),
    "ecr": lambda c: within(b64(c, 60), "$ aws ecr get-login-password\n{}\n"),
    "op read": lambda c: within(some(c, 20), "$ op read op://dev/db/pw\n{}\n"),
    "vault root": lambda c: within("s." + some(c, 24), "Initial Root Token: {}"),
    "go dsn": lambda c: within(some(c, 12), 'sql.Open("mysql", "app:{}@tcp(db:3306)/shop")'),
    "jdbc login": lambda c: within(some(c, 12), 'DriverManager.getConnection(url, "sa", "{}")'),
    "telegram url": lambda c: within(some(c, 35), "https://api.telegram.org/bot123456789:{}/getMe"),
    "webhook": lambda c: within(some(c, 12), "https://hooks.zapier.com/hooks/catch/123456/{}/"),
    "wifi": lambda c: within(some(c, 12), "WIFI:T:WPA;S:Office;P:{};;"),
    "recovery codes": lambda c: within("a1b2c-" + some(c, 5).lower(), "Recovery codes:\n  {}\n"),
    # names in which the secret word is not the last
    "SECRET_KEY_BASE": lambda c: within(some(c, 64, HEX), "RAILS_ENV=production\nSECRET_KEY_BASE={}"),
    "JWT_SECRET_V2": lambda c: within(bare(c, 24), "$ env | grep JWT\nJWT_SECRET_V2={}"),
    "TOKEN_GITHUB": lambda c: within(some(c, 24), "export TOKEN_GITHUB={}"),
    "staging": lambda c: within(b64(c, 30), "AWS_SECRET_ACCESS_KEY_STAGING={}"),
    "ROOT_PW": lambda c: within(some(c, 10), "+ ROOT_PW={}"),
    "PW": lambda c: within(some(c, 10), "PW='{}' ./deploy.sh"),
    "DB_PASSWORD_FOR_TESTS": lambda c: within(signs(c, 12), "DB_PASSWORD_FOR_TESTS={}"),
    "camel": lambda c: within(some(c, 20), '{{"apiKeyProd": "{}", "region": "eu"}}'),
    "camel password": lambda c: within(some(c, 9), "const dbPasswordStaging = '{}';"),
    "dashed": lambda c: within(some(c, 20), "x-api-key-staging: {}"),
    "API_KEY": lambda c: within(bare(c, 16), "API_KEY={}"),
    "API_KEY quoted": lambda c: within(bare(c, 16), 'API_KEY="{}"'),
    "api_key yaml": lambda c: within(bare(c, 16), "openai:\n  api_key: {}\n  model: small"),
    "api_key json": lambda c: within(bare(c, 16), '{{"api_key": "{}"}}'),
    "API_KEY urlsafe": lambda c: within(url(c, 12), "API_KEY={}"),
    "ACCESS_TOKEN": lambda c: within(bare(c, 32), "ACCESS_TOKEN={} ./run"),
    "compose": lambda c: within(some(c, 12), "environment:\n  - POSTGRES_PASSWORD={}\n  - TZ=UTC"),
    "docker -e": lambda c: within(bare(c, 16), "docker run -e STRIPE_SECRET={} app"),
    "word as a password": lambda c: within("swordfish", "MYSQL_ROOT_PASSWORD={}"),
    # configuration files
    "docker auth": lambda c: within(login(c), '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}'),
    "docker auth, lines": lambda c: within(
        login(c), '"auths": {{\n\t"https://index.docker.io/v1/": {{\n\t\t"auth": "{}"'
    ),
    "identity token": lambda c: within(url(c, 40), '"identitytoken": "{}"'),
    "npm _auth": lambda c: within(login(c), "//registry.test/:_auth={}"),
    "npm _auth, quoted": lambda c: within(login(c), '_auth = "{}"'),
    "npm _authToken": lambda c: within(some(c, 36), "//registry.test/:_authToken={}"),
    "npm _password": lambda c: within(b64(c, 12), "//registry.test/:_password={}"),
    ".pgpass": lambda c: within(some(c, 10), "$ cat ~/.pgpass\ndb.test:5432:shop:ann:{}"),
    ".pgpass with stars": lambda c: within(signs(c, 10), "*:*:*:postgres:{}"),
    ".pgpass localhost": lambda c: within("swordfish", "localhost:5432:*:ann:{}"),
    "netrc, lines": lambda c: within(some(c, 12), "machine api.test\n  login ann\n  password {}"),
    "git-credentials": lambda c: within(some(c, 20), "https://ann:{}@git.test"),
    "wpa psk": lambda c: within(some(c, 12), 'network={{\n  ssid="home"\n  psk="{}"\n}}'),
    "psk bare": lambda c: within(some(c, 64, HEX), "psk={}"),
    "wireguard": lambda c: within(b64(c, 32), "[Interface]\nPrivateKey = {}\nAddress = 10.0.0.2/32"),
    "wireguard psk": lambda c: within(b64(c, 32), "PresharedKey = {}"),
    "kubeconfig": lambda c: within(b64(c, 90), "users:\n- name: ann\n  user:\n    client-key-data: {}"),
    "kubernetes secret": lambda c: within(b64(c, 12), "kind: Secret\ndata:\n  password: {}"),
    "toml": lambda c: within(some(c, 12), '[db]\npassword = "{}"'),
    "ini": lambda c: within(some(c, 12), "[client]\nuser=root\npassword={}"),
    "properties": lambda c: within(some(c, 12), "spring.datasource.password={}"),
    "xml element": lambda c: within(some(c, 12), "<server><password>{}</password></server>"),
    "xml attribute": lambda c: within(some(c, 12), '<add name="db" password="{}" />'),
    "xml key value": lambda c: within(some(c, 20), '<add key="ApiKey" value="{}" />'),
    "plist": lambda c: within(some(c, 20), "<key>apiToken</key>\n\t<string>{}</string>"),
    "powershell": lambda c: within(some(c, 12), '$env:DB_PASSWORD = "{}"'),
    "securestring": lambda c: within(some(c, 12), 'ConvertTo-SecureString "{}" -AsPlainText -Force'),
    "setx": lambda c: within(some(c, 20), "setx API_TOKEN {}"),
    "hcl": lambda c: within(some(c, 12), 'variable "db_password" {{\n  default = "{}"\n}}'),
    "hcl argument": lambda c: within(some(c, 20), 'client_secret = "{}"'),
    "dsn words": lambda c: within(some(c, 10), "host=db user=ann password={} dbname=shop"),
    "jdbc": lambda c: within(some(c, 10), "jdbc:mysql://db:3306/shop?user=ann&password={}"),
    "sqlserver": lambda c: within(some(c, 10), "Server=db;User Id=sa;Password={};Encrypt=True"),
    "pwd": lambda c: within(some(c, 10), "Server=db;Uid=sa;Pwd={};"),
    "rails credentials": lambda c: within(some(c, 32, HEX), "config/master.key\n{}"),
    "jwk": lambda c: within(url(c, 32), '{{"kty":"EC","crv":"P-256","x":"abc","y":"def","d":"{}"}}'),
    "jwk rsa": lambda c: within(url(c, 128), '{{\n "kty": "RSA",\n "n": "0vx7",\n "e": "AQAB",\n "dp": "{}"\n}}'),
    "jwk oct": lambda c: within(url(c, 32), '{{"k": "{}", "kty": "oct", "alg": "HS256"}}'),
    "private key, one line": lambda c: within(
        b64(c, 90), '{{"private_key": "-----BEGIN ' + "PRIVATE KEY-----\\n{}\\n-----END " + 'PRIVATE KEY-----\\n"}}'
    ),
    # wallets
    "mnemonic": lambda c: within(phrase(c, 12), 'MNEMONIC="{}"'),
    "mnemonic, 24": lambda c: within(phrase(c, 24), "mnemonic: {}"),
    "mnemonic, json": lambda c: within(phrase(c, 12), '{{"mnemonic": "{}"}}'),
    "mnemonic, told": lambda c: within(phrase(c, 12), "Your recovery phrase:\n\n  {}\n\nKeep it safe."),
    "mnemonic, backup": lambda c: within(phrase(c, 24), "wallet words: {}"),
    # addresses that let anybody in
    "s3 presigned": lambda c: within(
        some(c, 64, HEX), "https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature={}"
    ),
    "s3 v2": lambda c: within(
        b64(c, 20).replace("+", "%2B"), "https://b.s3.amazonaws.com/k?AWSAccessKeyId=x&Signature={}&Expires=1700000000"
    ),
    "security token": lambda c: within(url(c, 90), "https://b.s3.test/k?X-Amz-Security-Token={}&X-Amz-Date=20260101"),
    "gcs presigned": lambda c: within(some(c, 128, HEX), "https://storage.googleapis.com/b/o?X-Goog-Signature={}"),
    "azure sas": lambda c: within(
        b64(c, 32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D"),
        "https://x.blob.core.windows.net/c/b?sp=r&sv=2022-11-02&sr=b&sig={}",
    ),
    "cloudfront": lambda c: within(url(c, 90), "https://d1.cloudfront.net/f?Expires=1&Signature={}&Key-Pair-Id=K1"),
    # code
    "fernet": lambda c: within(base64.urlsafe_b64encode(c.randbytes(32)).decode(), "f = Fernet(b'{}')"),
    "fernet, double": lambda c: within(base64.urlsafe_b64encode(c.randbytes(32)).decode(), 'Fernet("{}").decrypt(x)'),
    "bytes": lambda c: within(some(c, 20), "SECRET_KEY = b'{}'"),
    "setdefault": lambda c: within(some(c, 20), "os.environ.setdefault('API_KEY', '{}')"),
    "getenv": lambda c: within(some(c, 20), "os.getenv('API_TOKEN', '{}')"),
    "hmac": lambda c: within(some(c, 20), "hmac.new(b'{}', body, 'sha256')"),
    "jwt encode": lambda c: within(some(c, 20), "jwt.encode(payload, '{}', algorithm='HS256')"),
    # command lines
    "smbclient": lambda c: within(some(c, 10), "smbclient //host/share -U ann%{}"),
    "smbclient domain": lambda c: within(some(c, 10), "smbclient //host/share -U 'CORP\\ann%{}'"),
    "mount cifs": lambda c: within(some(c, 10), "mount -t cifs -o username=ann,password={},uid=1000 //h/s /mnt"),
    "openssl pass": lambda c: within(some(c, 10), "openssl rsa -in k.pem -passin pass:{}"),
    "openssl enc": lambda c: within(some(c, 10), "openssl enc -aes-256-cbc -k {} -in a -out b"),
    "openssl quoted": lambda c: within(some(c, 10), 'openssl pkcs12 -export -passout "pass:{}" -out x.p12'),
    "sqlcmd": lambda c: within(some(c, 10), "sqlcmd -S db -U sa -P {} -Q 'select 1'"),
    "sqlcmd quoted": lambda c: within(signs(c, 10), 'sqlcmd -S db -U sa -P "{}"'),
    "bcp": lambda c: within(some(c, 10), "bcp shop.dbo.t out f -S db -U sa -P{}"),
    "ldapsearch": lambda c: within(some(c, 10), "ldapsearch -x -D cn=admin -w {} -b dc=x"),
    "zip": lambda c: within(some(c, 10), "zip -P {} out.zip f"),
    "unzip": lambda c: within(some(c, 10), "unzip -P {} out.zip"),
    "7z": lambda c: within(some(c, 10), "7z x -p{} a.7z"),
    "mongosh": lambda c: within(some(c, 10), "mongosh --host db -u ann -p {}"),
    "mysql quoted": lambda c: within(signs(c, 10), "mysql -u root -p'{}' shop"),
    "mysql long": lambda c: within("swordfish", "mysql --user=root --password={} shop"),
    "redis-cli": lambda c: within("swordfish", "redis-cli -h r -a {} ping"),
    "curl proxy": lambda c: within(some(c, 10), "curl -x http://p:3128 -U ann:{} https://x.test"),
    "curl password in list": lambda c: within(some(c, 10), "curl --digest --user ann:{} https://x.test"),
    "curl header": lambda c: within(some(c, 24), "curl -H 'X-Auth-Token: {}' https://x.test"),
    "private token": lambda c: within(some(c, 20), "curl --header 'PRIVATE-TOKEN: {}' https://git.test"),
    "curl data": lambda c: within(some(c, 12), "curl -d 'user=ann&password={}' https://x.test/login"),
    "curl json": lambda c: within(some(c, 12), """curl -d '{{"user":"ann","pass":"{}"}}' https://x.test/login"""),
    "httpie": lambda c: within(some(c, 10), "http -a ann:{} https://x.test"),
    "wget": lambda c: within(some(c, 10), "wget --user=ann --password={} https://x.test"),
    "sshpass env": lambda c: within(some(c, 10), "SSHPASS={} sshpass -e ssh ann@h"),
    "chpasswd": lambda c: within(some(c, 10), "echo 'root:{}' | chpasswd"),
    "chpasswd, sudo": lambda c: within(some(c, 10), 'echo "ann:{}" | sudo chpasswd'),
    "chpasswd, here": lambda c: within(some(c, 10), "chpasswd <<< 'root:{}'"),
    "chpasswd, document": lambda c: within(some(c, 10), "chpasswd <<EOF\nroot:{}\nEOF"),
    "here-string": lambda c: within(some(c, 10), "sudo -S apt update <<< '{}'"),
    "here-string, login": lambda c: within(some(c, 20), 'docker login -u ann --password-stdin <<< "{}"'),
    "passwd stdin": lambda c: within(some(c, 10), "echo {} | passwd --stdin ann"),
    "printf": lambda c: within(some(c, 20), "printf '%s' '{}' | docker login -u ann --password-stdin"),
    "echo login": lambda c: within(some(c, 20), "echo {} | gh auth login --with-token"),
    "cryptsetup": lambda c: within(some(c, 10), "echo -n '{}' | cryptsetup open /dev/sdb x -"),
    "secret put": lambda c: within(some(c, 20), "echo '{}' | gh secret set API_KEY"),
    "gpg": lambda c: within(phrase(c, 4), "gpg --batch --passphrase '{}' -c f"),
    "phrase": lambda c: within(phrase(c, 4), 'SSH_PASSPHRASE="{}"'),
    "phrase, yaml": lambda c: within(phrase(c, 5), 'passphrase: "{}"'),
    "phrase, python": lambda c: within(phrase(c, 4), "load(pem, password='{}')"),
    "phrase, ssh-keygen": lambda c: within(phrase(c, 4), 'ssh-keygen -t ed25519 -N "{}" -f id'),
    "ssh-keygen": lambda c: within(some(c, 10), "ssh-keygen -t ed25519 -N {} -f id"),
    "psql": lambda c: within(some(c, 10), "psql 'host=db user=ann password={}'"),
    "vault": lambda c: within(some(c, 20), "vault kv put secret/app password={}"),
    "kubectl": lambda c: within(some(c, 12), "kubectl create secret generic db --from-literal=password={}"),
    "from-literal": lambda c: within(some(c, 20), "kubectl create secret generic db --from-literal=api-key={}"),
    "helm": lambda c: within(some(c, 12), "helm install db x --set auth.postgresPassword={}"),
    "keytool": lambda c: within(some(c, 12), "keytool -list -storepass {} -keystore k.jks"),
    "ansible": lambda c: within(some(c, 12), "ansible-playbook x.yml -e ansible_become_pass={}"),
    "xfreerdp": lambda c: within(some(c, 12), "xfreerdp /u:ann /p:{} /v:host"),
    "net use": lambda c: within(some(c, 12), "net use Z: \\\\host\\share {} /user:ann"),
    "lftp": lambda c: within(some(c, 12), "lftp -u ann,{} ftp.test"),
    "aws configure": lambda c: within(b64(c, 30), "aws configure set aws_secret_access_key {}"),
    "npm config set": lambda c: within(some(c, 36), "npm config set //registry.test/:_authToken {}"),
    "git config": lambda c: within(some(c, 20), "git config http.extraheader 'AUTHORIZATION: bearer {}'"),
    "set-cookie": lambda c: within(url(c, 24), "< set-cookie: session={}; Path=/; HttpOnly; Secure"),
    "basic": lambda c: within(login(c), "> Authorization: Basic {}"),
    "csrf": lambda c: within(url(c, 24), '<input type="hidden" name="csrf_token" value="{}">'),
    "identified": lambda c: within(some(c, 10), "ALTER USER ann IDENTIFIED BY '{}';"),
    "printed": lambda c: within(some(c, 12), "Generated root password: {}"),
    "temporary": lambda c: within(signs(c, 12), "A temporary password is generated for root@localhost: {}"),
    "one-time": lambda c: within(some(c, 20), "Your API token is: {}"),
    "entered": lambda c: within(some(c, 10), "Enter password: {}"),
    "totp": lambda c: within(
        some(c, 32, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), "otpauth://totp/x:ann?secret={}&issuer=x"
    ),
    "env printenv": lambda c: within(bare(c, 16), "$ printenv | sort\nHOME=/root\nSTRIPE_API_KEY={}\nTERM=xterm"),
    "set -x": lambda c: within(some(c, 12), "+ export DB_ROOT_PASSWORD={}"),
    "declare": lambda c: within(some(c, 20), 'declare -x NPM_TOKEN="{}"'),
    "docker inspect": lambda c: within(some(c, 12), '"Env": [\n "MYSQL_PASSWORD={}",\n "PATH=/usr/bin"\n]'),
    "docker build arg": lambda c: within(some(c, 20), "docker build --build-arg NPM_TOKEN={} ."),
    "docker history": lambda c: within(some(c, 20), "|1 GITHUB_TOKEN={} /bin/sh -c npm ci"),
    "ps": lambda c: within(some(c, 12), "root 12 0.0 mysqld --user=root --password={}"),
    "history": lambda c: within(some(c, 12), "  501  mysql -uroot -p{} shop"),
    "heroku": lambda c: within(some(c, 64, HEX), "SECRET_KEY_BASE:          {}"),
    "heroku config": lambda c: within(some(c, 20), "heroku config:set JWT_SECRET={} -a x"),
    "fly": lambda c: within(some(c, 20), "fly secrets set SESSION_SECRET={}"),
    "kubectl yaml": lambda c: within(some(c, 12), "stringData:\n  db-password: {}"),
    "kubectl env": lambda c: within(some(c, 20), '        - name: SLACK_SIGNING_SECRET\n          value: "{}"'),
    "kubectl jsonpath": lambda c: within(b64(c, 12), '{{"data":{{"password":"{}","username":"YW5u"}}}}'),
    "terraform out": lambda c: within(some(c, 16), 'db_password = "{}"'),
    "tfvars": lambda c: within(bare(c, 24), 'github_token = "{}"'),
    "tfstate": lambda c: within(some(c, 16), '"attributes": {{"password": "{}", "username": "sa"}}'),
    "ansible vars": lambda c: within(some(c, 12), "ansible_ssh_pass: {}"),
    "ansible inventory": lambda c: within(some(c, 12), "web1 ansible_user=ann ansible_password={}"),
    "git remote": lambda c: within(some(c, 20), "origin  https://oauth2:{}@git.test/x.git (fetch)"),
    "git trace": lambda c: within(login(c), "http.extraheader=AUTHORIZATION: basic {}"),
    "curl -v": lambda c: within(some(c, 30), "> Authorization: Bearer {}\n> Accept: */*"),
    "curl oauth": lambda c: within(
        some(c, 24), "curl -d grant_type=client_credentials -d client_secret={} https://x.test"
    ),
    "token json": lambda c: within(url(c, 40), '{{"access_token":"{}","token_type":"Bearer","expires_in":3600}}'),
    "refresh": lambda c: within(url(c, 40), "'refresh_token': '{}'"),
    "id session": lambda c: within(url(c, 40), '"sessionToken": "{}"'),
    "aws sts": lambda c: within(b64(c, 30), '"SecretAccessKey": "{}",\n"SessionToken": "x"'),
    "aws creds": lambda c: within(b64(c, 30), "[default]\naws_access_key_id = x\naws_secret_access_key = {}"),
    "s3cfg": lambda c: within(b64(c, 30), "[default]\nsecret_key = {}"),
    "rclone": lambda c: within(url(c, 20), "[drive]\ntype = sftp\npass = {}"),
    "my.cnf": lambda c: within(some(c, 10), '[client]\nuser = root\npassword = "{}"'),
    "odbc": lambda c: within(some(c, 10), "DRIVER={{x}};SERVER=db;UID=sa;PWD={}"),
    "mongodb uri": lambda c: within(some(c, 10), "mongodb+srv://ann:{}@c0.test/db"),
    "redis uri": lambda c: within(some(c, 10), "redis://:{}@r:6379/0"),
    "amqp": lambda c: within(some(c, 10), "amqp://guest:{}@mq:5672//"),
    "redis conf": lambda c: within(some(c, 20), "requirepass {}"),
    "redis auth": lambda c: within(some(c, 20), "127.0.0.1:6379> AUTH {}"),
    "redis env": lambda c: within(some(c, 20), "REDISCLI_AUTH={} redis-cli ping"),
    "ftp": lambda c: within(some(c, 10), "> USER ann\n> PASS {}"),
    "smtp": lambda c: within(some(c, 16), "smtp.login('ann@x.test', '{}')"),
    "imap": lambda c: within(some(c, 10), "a1 LOGIN ann {}"),
    "nodemailer": lambda c: within(some(c, 12), "auth: {{ user: 'ann', pass: '{}' }}"),
    "django": lambda c: within("django-insecure-" + some(c, 40), "SECRET_KEY = '{}'"),
    "flask": lambda c: within(some(c, 32, HEX), "app.secret_key = '{}'"),
    "flask cfg": lambda c: within(some(c, 20), "app.config['SECRET_KEY'] = '{}'"),
    "spring yaml": lambda c: within(some(c, 12), "  datasource:\n    password: {}"),
    "dotnet user-secrets": lambda c: within(some(c, 20), 'dotnet user-secrets set "ApiKey" "{}"'),
    "appsettings": lambda c: within(some(c, 20), '"Jwt": {{ "SigningKey": "{}" }}'),
    "gradle": lambda c: within(some(c, 12), "signing.password={}"),
    "maven settings": lambda c: within(some(c, 12), "<username>ann</username>\n<password>{}</password>"),
    "android": lambda c: within(some(c, 12), "storePassword '{}'"),
    "pip": lambda c: within(some(c, 20), "index-url = https://ann:{}@pypi.test/simple"),
    "pypirc": lambda c: within(some(c, 20), "username = ann\npassword = {}"),
    "yarnrc": lambda c: within(url(c, 24), 'npmAuthToken: "{}"'),
    "cargo": lambda c: within(some(c, 32), '[registry]\ntoken = "{}"'),
    "gem": lambda c: within(some(c, 48, HEX), ":rubygems_api_key: {}"),
    "composer": lambda c: within(some(c, 40, HEX), '"github-oauth": {{"github.com": "{}"}}'),
    "composer basic": lambda c: within(
        some(c, 12), '"http-basic": {{"x.test": {{"username": "ann", "password": "{}"}}}}'
    ),
    "hub": lambda c: within(some(c, 40, HEX), "oauth_token: {}"),
    "circleci": lambda c: within(some(c, 40, HEX), "token: {}"),
    "slack cfg": lambda c: within(some(c, 32, HEX), "signing_secret: {}"),
    "webhook secret": lambda c: within(some(c, 24), "WEBHOOK_SECRET_PROD={}"),
    "twilio": lambda c: within(some(c, 32, HEX), "TWILIO_AUTH_TOKEN={}"),
    "sentry dsn": lambda c: within(some(c, 32, HEX), "https://{}@o1.ingest.test/2"),
    "azure cs": lambda c: within(b64(c, 32), "Endpoint=sb://x.test/;SharedAccessKeyName=Root;SharedAccessKey={}"),
    "azure sp": lambda c: within(some(c, 34), '"clientSecret": "{}"'),
    "az login": lambda c: within(some(c, 30), "az login --service-principal -u x -p {} --tenant t"),
    "gcp key": lambda c: within(some(c, 40, HEX), '"private_key_id": "{}"'),
    "openvpn": lambda c: within(some(c, 12), "--auth-password {}"),
    "nmcli": lambda c: within(some(c, 12), "nmcli dev wifi connect Home password {}"),
    "nmconnection": lambda c: within(some(c, 12), "[wifi-security]\nkey-mgmt=wpa-psk\npsk={}"),
    "wpa_passphrase": lambda c: within(some(c, 12), "wpa_passphrase Home {}"),
    "iwconfig": lambda c: within(some(c, 12), 'wpa_psk="{}"'),
    "hostapd": lambda c: within(some(c, 12), "wpa_passphrase={}"),
    "useradd": lambda c: within(some(c, 12), "net user ann {} /add"),
    "htpasswd": lambda c: within(some(c, 12), "htpasswd -b .htpasswd ann {}"),
    "expect": lambda c: within(some(c, 12), 'expect "password:"; send "{}\\r"'),
    "sudo pipe": lambda c: within(some(c, 12), "echo {} | sudo -S apt update"),
    "gpg 2": lambda c: within(some(c, 12), "gpg --batch --yes --passphrase={} -d f.gpg"),
    "zip e": lambda c: within(some(c, 12), "7za a -p{} -mhe out.7z d"),
    "ssh pass": lambda c: within(signs(c, 12), "sshpass -p '{}' ssh ann@h"),
    "mssql env": lambda c: within(signs(c, 12), '-e "SA_PASSWORD={}"'),
    "psql url": lambda c: within(signs(c, 12).replace("#", "x").replace("?", "x"), "postgres://ann:{}@db/x"),
    "createuser": lambda c: within(some(c, 12), "CREATE ROLE ann LOGIN PASSWORD '{}'"),
    "mysql set": lambda c: within(some(c, 12), "SET PASSWORD FOR 'ann'@'%' = PASSWORD('{}');"),
    "mongo create": lambda c: within(some(c, 12), "db.createUser({{user: 'ann', pwd: '{}', roles: []}})"),
    "vault token": lambda c: within(some(c, 26), "VAULT_TOKEN={}"),
    "consul": lambda c: within("-".join(some(c, n, HEX) for n in (8, 4, 4, 4, 12)), "CONSUL_HTTP_TOKEN={}"),
    "nomad uuid": lambda c: within("-".join(some(c, n, HEX) for n in (8, 4, 4, 4, 12)), "Secret ID = {}"),
    "plist 2": lambda c: within(some(c, 12), "<key>Password</key><string>{}</string>"),
    "ps cred": lambda c: within(some(c, 12), "$password = '{}'"),
    "ps param": lambda c: within(some(c, 12), "New-LocalUser ann -Password {}"),
    "bat": lambda c: within(some(c, 12), "set DB_PASSWORD={}"),
    "go": lambda c: within(some(c, 20), 'apiKey := "{}"'),
    "rust": lambda c: within(some(c, 20), 'const API_TOKEN: &str = "{}";'),
    "java": lambda c: within(some(c, 20), 'private static final String SECRET = "{}";'),
    "php": lambda c: within(some(c, 12), "define('DB_PASSWORD', '{}');"),
    "php2": lambda c: within(some(c, 12), "'password' => '{}',"),
    "ruby": lambda c: within(some(c, 12), "password: '{}',"),
    "kotlin": lambda c: within(some(c, 20), 'val apiKey = "{}"'),
    "c#": lambda c: within(some(c, 12), 'new NetworkCredential("ann", "{}")'),
    "js header": lambda c: within(some(c, 24), "headers: {{ 'x-api-key': '{}' }}"),
    "graphql": lambda c: within(some(c, 12), 'login(user: "ann", password: "{}")'),
    "soap": lambda c: within(some(c, 12), '<wsse:Password Type="x">{}</wsse:Password>'),
    "log": lambda c: within(some(c, 24), "DEBUG auth: using token={} for ann"),
    "log2": lambda c: within(some(c, 12), "login failed for ann with password '{}'"),
    "log3": lambda c: within(some(c, 24), "[INFO] api_key -> {}"),
    "log4": lambda c: within(some(c, 12), "password='{}' rejected"),
    "repr": lambda c: within(some(c, 12), "Settings(user='ann', password=SecretStr('{}'))"),
    "table": lambda c: within(some(c, 20), "| API_TOKEN | {} |"),
    "md": lambda c: within(some(c, 12), "**Password:** `{}`"),
    "bitcoin wif": lambda c: within(
        "5" + some(c, 50, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"), "private key (WIF): {}"
    ),
    "eth": lambda c: within("0x" + some(c, 64, HEX), "PRIVATE_KEY={}"),
    "mnemonic, numbered": lambda c: _numbered(phrase(c, 12).split()),
    "mnemonic comma": lambda c: within(phrase(c, 12), "seed words = {}"),
    "otp": lambda c: within(some(c, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), "TOTP secret: {}"),
    "cookie jar": lambda c: within(url(c, 24), ".x.test\tTRUE\t/\tTRUE\t0\tsessionid\t{}"),
    "set cookie py": lambda c: within(url(c, 24), "cookies={{'sessionid': '{}'}}"),
    "gh hosts": lambda c: within(some(c, 40), "github.com:\n    oauth_token: {}\n    user: ann"),
    "jenkins": lambda c: within(some(c, 34, HEX), "curl -u ann:{} https://ci.test/job"),
    "kube token": lambda c: within(bare(c, 40), "    token: {}"),
    "kube bootstrap": lambda c: within(
        some(c, 6, HEX) + "." + some(c, 16, HEX), "kubeadm join 10.0.0.1:6443 --token {}"
    ),
    "k3s": lambda c: within("K10" + some(c, 64, HEX) + "::server:" + some(c, 32, HEX), "K3S_TOKEN={}"),
    "age": lambda c: within(bare(c, 24), "SIGNING_KEY_2024={}"),
    "deploy key b64": lambda c: within(b64(c, 60), "SSH_PRIVATE_KEY={}"),
    "encrypt key": lambda c: within(b64(c, 32), "APP_KEY=base64:{}"),
    "nextauth": lambda c: within(b64(c, 32), "NEXTAUTH_SECRET={}"),
    "pgbouncer": lambda c: within(some(c, 12), "db_pass={}"),
    "docker cfg": lambda c: within(login(c), '{{\\"auths\\":{{\\"x\\":{{\\"auth\\":\\"{}\\"}}}}}}'),
    "imagePull": lambda c: within(
        some(c, 12), "kubectl create secret docker-registry r --docker-username=ann --docker-password={}"
    ),
    "cert pw": lambda c: within(some(c, 12), "openssl pkcs12 -in a.pfx -nodes -password pass:{}"),
    "jks": lambda c: within(some(c, 12), "-Djavax.net.ssl.keyStorePassword={}"),
    "java -D": lambda c: within(some(c, 20), "java -Dapi.token={} -jar a.jar"),
    "a token with a point": lambda c: within(
        f"a{c.randrange(9)}{some(c, 6)}7q4x.Z{c.randrange(9)}k{c.randrange(9)}{some(c, 8)}",
        "GET /x?access_token={}&n=1",
    ),
    "pass within a line": lambda c: within(
        f"J{c.randrange(9)}q{c.randrange(9)}{some(c, 12)}", "rclone config: pass = {}"
    ),
    "hook of Mattermost": lambda c: within(f"{c.randrange(9)}{bare(c, 25).lower()}", "https://chat.acme.test/hooks/{}"),
    "hook of Rocket.Chat": lambda c: within(
        f"{c.randbytes(12).hex()}/{some(c, 43)}", "https://chat.acme.test:3000/hooks/{}"
    ),
    "query key": lambda c: within(some(c, 39), "GET https://maps.test/api?key={}&q=x"),
    "ghs": lambda c: within(some(c, 20), "https://x-access-token:{}@github.com/a/b"),
}
"""What shells, tools and configuration files show of secrets."""
