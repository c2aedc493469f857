"""Tools that mean harm, beyond what tests/sandbox has: they go for powers, secrets and data that are not theirs.

Each is name -> (body of run, where it may end): `value` an answer that gives nothing away, else the kind of its error.
"""

BORROWED = "error denied"

POWERS: dict[str, tuple[str, str]] = {
    "fetch that was not granted": ("from hitl import fetch\nreturn fetch('https://example.com')", "denied"),
    "fetch through the module": ("import hitl\nreturn hitl.fetch('https://example.com')", "denied"),
    "files that were not granted": ("from hitl import files\nreturn files.read('x')", "denied"),
    "write of a file through the module": ("import hitl\nreturn hitl.files.write('x', 'y')", "denied"),
    "secret that was not granted": ("from hitl import secret\nreturn secret('MINE')", "denied"),
    "e-mail that was not granted": ("from hitl import send_email\nsend_email('a@b.example', 'x', 'y')", "denied"),
    "webhook that was not granted": ("from hitl import webhook\nreturn webhook('ALERTS_URL', {})", "denied"),
    "clock that was not granted": ("from datetime import datetime\nreturn str(datetime.now())", "denied"),
    "clock by another name": ("import time\nreturn time.time()", "denied"),
    "today that was not granted": ("from datetime import date\nreturn str(date.today())", "denied"),
    "chance that was not granted": ("import random\nreturn random.random()", "denied"),
    "sleep that was not granted": ("import time\ntime.sleep(0.01)", "denied"),
    "a power by getattr": ("import hitl\nreturn getattr(hitl, 'fe' + 'tch')('https://example.com')", BORROWED),
    "a power out of a loop over names": (
        "import hitl\nfor n in ['fetch', 'secret', 'files', 'webhook']:\n  try: return getattr(hitl, n)\n"
        "  except AttributeError: pass\nraise ValueError('none')",
        BORROWED,
    ),
    "a module of ours": ("import hitlchat.settings", "error"),
    "the module below hitl": ("from hitl.store import get\nreturn get('theirs')", "denied"),
    "all of hitl": ("from hitl import *\nreturn fetch('https://example.com')", "error denied syntax"),
    "import by exec": ("exec('from hitl import secret')\nreturn secret('MINE')", BORROWED),
    "import by eval": ('return eval(\'__import__("hitl").secret("MINE")\')', BORROWED),
    "a name of the driver": ("return _hitl_arguments", "error value"),
    "another result": ("global _hitl_result\n_hitl_result = 'forged'\nraise ValueError('no')", "error"),
    "a forged call": ("return hitl.fetch('https://example.com')", "error"),
    "a call of an import": ("import_stubs('os')", "error"),
    "a call of the system": ("system.sleep(1)", "error"),
}

# With the capabilities `store`, `files` (folder `mine`, reading), `secrets`; there is a neighbour with all of them.
THEFT: dict[str, tuple[str, str]] = {
    "another group's key": ("from hitl import store\nreturn store.get('theirs')", "value"),
    "another group by prefix": ("from hitl import store\nreturn store.keys('')", "value"),
    "another group by path": ("from hitl import store\nreturn store.get('../neighbour/theirs')", "value"),
    "a pattern for keys": ("from hitl import store\nreturn store.keys('%')", "value"),
    "a key with SQL in it": ('from hitl import store\nreturn store.get("\' OR 1=1 --")', "value"),
    "a key that is no text": ("from hitl import store\nreturn store.get({'__contains': 'theirs'})", "error"),
    "a group as argument": ("from hitl import store\nreturn store.get('theirs', group='neighbour')", "error"),
    "another tool's secret": ("from hitl import secret\nreturn secret('THEIR_KEY')", "error"),
    "a secret of the server": ("from hitl import secret\nreturn secret('SECRET_KEY')", "error"),
    "another tool's variable": ("from hitl import variable\nreturn variable('THEIR_NOTE')", "error"),
    "a variable of the server": ("from hitl import variable\nreturn variable('DATABASE_URL')", "error"),
    "a reference as a name": ("from hitl import variable\nreturn variable('${SECRET_KEY}')", "error"),
    "a folder above": ("from hitl import files\nreturn files.read('../neighbour/theirs.txt')", "error"),
    "a folder above in the middle": (
        "from hitl import files\nreturn files.read('a/../../neighbour/theirs.txt')",
        "error",
    ),
    "an absolute path": ("from hitl import files\nreturn files.read('/etc/passwd')", "error"),
    "a path with a null": ("from hitl import files\nreturn files.read('own.txt\\x00.png')", "error"),
    "a path of the other kind": ("from hitl import files\nreturn files.read('..\\\\neighbour\\\\theirs.txt')", "error"),
    "a link that leads away": ("from hitl import files\nreturn files.read('leak.txt')", BORROWED),
    "a linked folder": ("from hitl import files\nreturn files.list('away')", BORROWED),
    "all folders": ("from hitl import files\nreturn files.list('..')", "error"),
    "a write where only reading is granted": ("from hitl import files\nfiles.write('own.txt', 'x')", "denied"),
    "a file that never ends": ("from hitl import files\nreturn files.read('device')", "error"),
    "its own process": ("from hitl import files\nreturn files.read('proc/self/environ')", BORROWED),
}

# With the capability `fetch` for any public host: nothing inside this network is one.
INWARDS = [
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://[::1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "http://2130706433:{port}/", "http://0177.0.0.1:{port}/", "http://0x7f.1:{port}/", "http://127.1:{port}/",
    "http://0.0.0.0:{port}/", "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/",
    "http://10.0.0.1/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://[fe80::1]/",
    "http://[64:ff9b::7f00:1]/", "http://user:pass@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@example.com/",
    "file:///etc/passwd", "gopher://127.0.0.1:{port}/", "http://\uff11\uff12\uff17.0.0.1:{port}/", "http://localhost.:{port}/",
]  # fmt: skip
