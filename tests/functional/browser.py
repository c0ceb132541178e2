# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, driven through its debugging pipe."""

import json
import os
import shutil
import signal
import subprocess
import time

from ttlib import SLOW, Skip, fail, short

NAMES = ('chromium', 'chromium-browser', 'google-chrome')


def find_browser():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if not path:
        raise Skip('there is no chromium: install it (Debian has it)')
    return path


class Browser:
    """One page of one browser: use it in a with statement."""

    def __init__(self, work, url, timeout=60):
        self.work, self.url = work, url
        self.end = time.monotonic() + timeout * SLOW
        self.count, self.pending, self.session = 0, b'', None
        self.errors = []

    def __enter__(self):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.read_fd, self.write_fd = ours_in, ours_out
        # It reads commands from 3 and writes answers to 4.
        command = ['bash', '-c', f'exec 3<&{theirs_in} 4>&{theirs_out} "$@"', 'bash',
                   find_browser(), '--headless', '--no-sandbox', '--disable-gpu',
                   '--disable-dev-shm-usage', '--no-first-run', '--remote-debugging-pipe',
                   f'--user-data-dir={os.path.join(self.work, "browser")}', 'about:blank']
        with open(os.path.join(self.work, 'browser.stderr'), 'wb') as err:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                pass_fds=(theirs_in, theirs_out), start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.ask('Target.createTarget', url='about:blank')['targetId']
        self.session = self.ask('Target.attachToTarget', targetId=target,
                                flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.ask(f'{domain}.enable')
        self.ask('Emulation.setDeviceMetricsOverride', width=1300, height=1000,
                 deviceScaleFactor=1, mobile=False)
        self.ask('Page.navigate', url=self.url)
        return self

    def __exit__(self, *unused):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.read_fd)
        os.close(self.write_fd)

    def _message(self):
        while b'\0' not in self.pending:
            if time.monotonic() > self.end:
                fail('the browser does not answer in time')
            data = os.read(self.read_fd, 1 << 16)
            if not data:
                fail('the browser has ended')
            self.pending += data
        line, self.pending = self.pending.split(b'\0', 1)
        return json.loads(line)

    def ask(self, method, **params):
        self.count += 1
        message = {'id': self.count, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.write_fd, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._message()
            self._note(answer.get('method'), answer.get('params', {}))
            if answer.get('id') == self.count:
                if 'error' in answer:
                    fail(f'{method}: {answer["error"]}')
                return answer['result']

    def _note(self, method, params):
        if method == 'Runtime.exceptionThrown' or (
                method == 'Log.entryAdded' and params['entry']['level'] == 'error'):
            self.errors.append(json.dumps(params))

    def value(self, expression):
        """What JavaScript says."""
        result = self.ask('Runtime.evaluate', expression=expression, returnByValue=True)
        if 'exceptionDetails' in result:
            fail(f'{expression}: {short(json.dumps(result["exceptionDetails"]))}')
        return result['result'].get('value')

    def wait(self, expression):
        while not self.value(expression):
            if time.monotonic() > self.end:
                fail(f'never true in the page: {expression}; {self.errors}')
            time.sleep(0.05)

    def click(self, x, y):
        for kind in ('mouseMoved', 'mousePressed', 'mouseReleased'):
            self.ask('Input.dispatchMouseEvent', type=kind, x=x, y=y, clickCount=1,
                     button='none' if kind == 'mouseMoved' else 'left')

    def drag(self, x1, x2, y):
        for kind, x in (('mouseMoved', x1), ('mousePressed', x1),
                        *(('mouseMoved', x1 + (x2 - x1) * i / 4) for i in range(1, 5)),
                        ('mouseReleased', x2)):
            self.ask('Input.dispatchMouseEvent', type=kind, x=x, y=y, clickCount=1,
                     button='none' if (kind, x) == ('mouseMoved', x1) else 'left',
                     buttons=1 if kind != 'mouseReleased' else 0)
