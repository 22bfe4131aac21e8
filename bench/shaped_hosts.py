"""Hosts out of network namespaces, whose links tc shapes and whose kernels get a part of a core.

Needs root, iproute2 and the right to make namespaces.
"""

import ctypes
import os
import platform
import secrets
import signal
import struct
import subprocess
import time

HOSTS = 4


class NotAllowed(Exception):
    """This machine does not let anybody make hosts."""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


class Processors:
    """Gives the kernels of each host a part of a core, under the kernel's deadline scheduler: in each
    period of some tenths of a millisecond they get that part of it, whatever other hosts do, and a
    host that has waited gets no more. What else the hosts do, their exchanges above all, goes before
    everything else on this machine."""

    RUNTIME_NS = 200_000  # in each period: short, as kernels are, and of few switches
    KERNELS = "queue 0"  # the name of the executor's thread that runs them
    SCHED_SETATTR, SCHED_DEADLINE, RESET_ON_FORK = 314, 6, 1
    NICE = -20

    def __init__(self):
        self.shares = []  # of a core, by host
        self.slowed = set()  # process and thread
        self.system = ctypes.CDLL(None, use_errno=True)

    def share(self, shares):
        """A host whose share is 1 has a core to itself."""
        if platform.machine() != "x86_64":
            raise NotAllowed("the number of sched_setattr is that of x86-64")
        self.shares = shares
        trial = subprocess.Popen(["sleep", "60"])
        try:
            for share in shares:
                self.slow_down_thread(trial.pid, share)
        except OSError as error:
            raise NotAllowed(error) from error
        finally:
            trial.kill()
            trial.wait()

    def slow_down_thread(self, thread, share):
        """Raises OSError where the kernel refuses."""
        if share >= 1.0:
            return
        # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period.
        period = int(self.RUNTIME_NS / share)
        attributes = struct.pack("=IIQiIQQQ", 48, self.SCHED_DEADLINE, self.RESET_ON_FORK, 0, 0,
                                 self.RUNTIME_NS, period, period)
        if self.system.syscall(self.SCHED_SETATTR, int(thread), attributes, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def enter(self):
        """Called in the child before it becomes a rank."""
        os.nice(self.NICE)

    def slow_down(self, host, process):
        """Threads of the process that have begun to run kernels get the host's part of a core."""
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                if (process, thread) in self.slowed:
                    continue
                with open(f"/proc/{process}/task/{thread}/comm") as file:
                    if file.read().strip() != self.KERNELS:
                        continue
                self.slow_down_thread(thread, self.shares[host])
                self.slowed.add((process, thread))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended


class Network:
    """Hosts 0, 1 below one switch, 2, 3 below another, and a link between the switches."""

    def __init__(self):
        self.prefix = f"sw{os.getpid() % 100000}"
        self.switches = f"{self.prefix}-net"
        self.made = []

    def make(self, host_mbit, uplink_mbit):
        """What was made is there to be removed, wherever this fails."""
        try:
            self.add_namespace(self.switches)
        except subprocess.CalledProcessError as error:
            raise NotAllowed(error) from error
        for rack in range(2):
            self.ip(self.switches, "link", "add", f"rack{rack}", "type", "bridge")
            self.ip(self.switches, "link", "set", f"rack{rack}", "up")
        self.ip(self.switches, "link", "add", "up0", "type", "veth", "peer", "name", "up1")
        for rack in range(2):
            self.join(f"up{rack}", rack)
            self.shape(self.switches, f"up{rack}", uplink_mbit)
        for host in range(HOSTS):
            self.add_host(host, host_mbit)

    def ip(self, namespace, *words):
        run("ip", "-n", namespace, *words)

    def add_namespace(self, name):
        run("ip", "netns", "add", name)
        self.made.append(name)

    def host(self, host):
        return f"{self.prefix}-h{host}"

    @staticmethod
    def address(host):
        return f"10.77.0.{host + 1}"

    def join(self, link, rack):
        self.ip(self.switches, "link", "set", link, "master", f"rack{rack}")
        self.ip(self.switches, "link", "set", link, "up")

    def shape(self, namespace, link, mbit):
        # A bucket of one packet: what passes at full speed after a pause should not matter.
        run("tc", "-n", namespace, "qdisc", "add", "dev", link, "root", "tbf", "rate",
            f"{mbit}mbit", "burst", "10kb", "limit", "8mb")
        self.ip(namespace, "link", "set", link, "mtu", "9000")

    def add_host(self, host, mbit):
        name = self.host(host)
        self.add_namespace(name)
        self.ip(self.switches, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0",
                "netns", name)
        self.join(f"port{host}", host // 2)
        self.ip(name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            self.ip(name, "link", "set", link, "up")
        self.shape(name, "eth0", mbit)
        self.shape(self.switches, f"port{host}", mbit)

    def remove(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def run_on_hosts(command, hosts, network, processors):
    """Runs one rank of a program on each of the hosts; all have ended afterwards. Raises SystemExit
    if one fails."""
    token = secrets.token_hex(16)
    ranks = []
    try:
        for rank, host in enumerate(hosts):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(len(hosts)),
                               LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", SHARDWRIGHT_TOKEN=token,
                               MASTER_ADDR=Network.address(hosts[0]), MASTER_PORT="29400")
            ranks.append(subprocess.Popen(
                ["ip", "netns", "exec", network.host(host), *command],
                env=environment, stdout=subprocess.DEVNULL,
                preexec_fn=processors.enter))
        while any(rank.poll() is None for rank in ranks):
            for host, rank in zip(hosts, ranks):
                processors.slow_down(host, rank.pid)
            time.sleep(0.05)
        failed = [rank.returncode for rank in ranks]
        if any(failed):
            raise SystemExit(f"closed_loop: ranks ended with {failed}")
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGKILL)
                rank.wait()
