"""Files that a student may save: broken, hostile, or both. None is right."""

# ruff: noqa: E501  # programs of one line

S = "def scores(q, k):\n"

# Each fails at once.
PLAIN = {
    "empty": "",
    "only a comment": "# later",
    "a syntax error": "def scores(q, k:\n    pass",
    "an indentation error": "def scores(q, k):\nreturn 1",
    "tabs and spaces": "def scores(q, k):\n\tx = 1\n        return x",
    "no name that is known": "def attend(q, k):\n    return q",
    "a null byte": "x = '\0'",
    "another encoding": "# coding: utf-7\nx = 1",
    "an unknown encoding": "# coding: klingon\nx = 1",
    "an exception": "1 / 0",
    "an unknown name": f"{S}    return Q @ k",
    "an unknown import": "import nothing_of_this_name",
    "itself imported": "import mine\nmine.scores",
    "not written": f"{S}    raise NotImplementedError",
    "nothing returned": f"{S}    pass",
    "a string": f"{S}    return 'scores'",
    "a list": f"{S}    return [[1.0]]",
    "a number": f"{S}    return 1",
    "a function": f"{S}    return scores",
    "no arguments": "def scores():\n    return 1",
    "five arguments": "def scores(a, b, c, d, e):\n    return a",
    "a class": "class scores:\n    pass",
    "a name alone": "scores = 5",
    "a method that is called": "class A:\n    def __call__(self, q, k):\n        return q\nscores = A()",
    "a shape": f"{S}    return q[:, :, :1] @ k.transpose(-2, -1)",
    "the input changed": f"{S}    q.zero_()\n    return q @ k.transpose(-2, -1)",
    "random": f"import torch\n{S}    return torch.rand_like(q @ k.transpose(-2, -1))",
    "NaN": f"{S}    return q @ k.transpose(-2, -1) / 0 * 0",
    "integers": f"{S}    return (q @ k.transpose(-2, -1)).long()",
    "complex": f"{S}    return (q @ k.transpose(-2, -1)).cfloat()",
    "a long message": f"{S}    raise ValueError('x' * 10**6)",
    "a message of lines": f"{S}    raise ValueError('a\\n' * 99)",
    "an error without words": f"class E(Exception):\n    def __str__(self):\n        1 / 0\n{S}    raise E",
    "a base exception": f"class E(BaseException): pass\n{S}    raise E('x')",
    "Ctrl+C": f"{S}    raise KeyboardInterrupt",
    "a generator's end": f"{S}    raise GeneratorExit",
    "it calls itself": f"{S}    return scores(q, k)",
    "it prints much": f"print('x' * 10**7)\n{S}    return q",
    "PyTorch broken": "import torch\ntorch.softmax = torch.isclose = torch.equal = None\n"
    "torch.Tensor.__matmul__ = None\ndef scores(q, k):\n    return q",
    "Python broken": "import builtins\nbuiltins.len = None\n" + f"{S}    return q",
    "json broken": "import json\njson.dumps = None\n" + f"{S}    return q",
    "modules gone": "import sys\nsys.modules.clear()\n" + f"{S}    return q",
    "the path gone": "import sys\nsys.path.clear()\n" + f"{S}    return q",
    "the network": "import urllib.request\nurllib.request.urlopen('http://192.0.2.1', timeout=2)",
}  # fmt: skip

# Each ends its process, or tries to.
CRASHES = {
    "it exits": "import sys; sys.exit()",
    "it exits in a call": f"{S}    raise SystemExit(3)",
    "it exits at once": "import os; os._exit(0)",
    "it exits at once in a call": f"import os\n{S}    os._exit(5)",
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "an abort": "import os; os.abort()",
    "it kills its parent": "import os; os.kill(os.getppid(), 9)\nos._exit(1)",
    "it kills its group": "import os; os.killpg(0, 9)\nos._exit(1)",
    "it kills all it can": "import os\nos.kill(-1, 9)\nos._exit(1)",
    "all memory": "x = [1] * 10**10",
    "all memory in PyTorch": f"import torch\n{S}    return torch.ones(10**11)",
    "all memory bit by bit": "x = []\nwhile True:\n    x.append(bytearray(10**7))",
    "a large file": "with open('large', 'wb') as f:\n    while True:\n        f.write(bytes(10**7))",
    "all files closed": "import os\nos.closerange(0, 100)\n1 / 0",
    "it speaks for us": "import os\nfor i in range(3, 40):\n    try:\n        os.write(i, b'{}\\n' * 9)\n"
    "    except OSError:\n        pass\n1 / 0",
    "much in our files": "import os\nfor i in range(3, 40):\n    try:\n        os.write(i, b'x' * 60000)\n"
    "    except OSError:\n        pass\n1 / 0",
}  # fmt: skip

# Each leaves processes behind.
ESCAPES = {
    "it leaves a process": "import os, time\nif not os.fork():\n    time.sleep(300)\n1 / 0",
    "it leaves a session": "import os, time\nif not os.fork():\n    os.setsid()\n"
    "    if os.fork():\n        os._exit(0)\n    time.sleep(300)\n1 / 0",
    "it leaves a program": "import subprocess\n"
    "subprocess.Popen(['sleep', '300'], start_new_session=True)\n1 / 0",
    "many processes": "import os, time\nfor i in range(40):\n    if not os.fork():\n"
    "        os.setsid()\n        time.sleep(300)\n1 / 0",
    "threads": "import threading, time\nfor i in range(20):\n"
    "    threading.Thread(target=time.sleep, args=(300,)).start()\n1 / 0",
}  # fmt: skip

# Each takes all its time.
ENDLESS = {
    "an endless loop": "while True:\n    pass",
    "an endless loop in a call": f"{S}    while True:\n        pass",
    "it sleeps": "import time\ntime.sleep(300)",
    "it waits for a key": "while True:\n    try:\n        input()\n    except EOFError:\n        pass",
    "it catches all": "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass",
    "it hears no signal": "import signal\nfor i in range(1, 32):\n    try:\n"
    "        signal.signal(i, signal.SIG_IGN)\n    except OSError:\n        pass\nwhile True:\n    pass",
    "a loop in C": "10 ** 10 ** 10",
    "a lock": "import threading\nthreading.Lock().acquire()\nlock = threading.Lock()\nlock.acquire()\n"
    "lock.acquire()",
}  # fmt: skip
