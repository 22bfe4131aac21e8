"""Hosts out of network namespaces, whose links tc shapes and whose kernels control groups slow down.

Needs root, iproute2 and the right to make namespaces.
"""

import os
import secrets
import signal
import subprocess
import time

HOSTS = 4


class NotAllowed(Exception):
    """This machine does not let anybody make hosts."""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


class ControlGroups:
    """One for the kernels of each host, with a part of the core that the host runs on; none for a
    host that has a core to itself."""

    QUOTA_US = 1000  # the least that the kernel takes: a host pauses often, and briefly
    KERNELS = "queue 0"  # the name of the executor's thread that runs them

    def __init__(self):
        self.all = None  # what holds the groups
        self.folders = {}  # by host
        self.unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.base = "/sys/fs/cgroup" if self.unified else "/sys/fs/cgroup/cpu"
        self.slowed = set()  # process and thread

    def make(self, shares):
        """What was made is there to be removed, wherever this fails. shares: of a core, by host."""
        if min(shares) >= 1.0:
            return
        try:
            folder = f"{self.base}/shardwright-{os.getpid()}"
            os.mkdir(folder)
            self.all = folder
            # Whatever else the machine does waits for this process and for the hosts.
            self.write(folder, *(("cpu.weight", 10000) if self.unified else ("cpu.shares", 262144)))
            self.write(folder, "cgroup.procs", os.getpid())
            for host, share in enumerate(shares):
                if share >= 1.0:
                    continue
                folder = f"{self.all}/host-{host}"
                os.mkdir(folder)
                self.folders[host] = folder
                self.limit(folder, int(self.QUOTA_US / share))
        except OSError as error:
            raise NotAllowed(error) from error

    def limit(self, folder, period):
        if self.unified:
            self.write(folder, "cgroup.type", "threaded")
            self.write(self.all, "cgroup.subtree_control", "+cpu")
            self.write(folder, "cpu.max", f"{self.QUOTA_US} {period}")
        else:
            self.write(folder, "cpu.cfs_period_us", period)
            self.write(folder, "cpu.cfs_quota_us", self.QUOTA_US)

    @staticmethod
    def write(folder, name, value):
        with open(os.path.join(folder, name), "w") as file:
            file.write(str(value))

    @staticmethod
    def enter(host):
        """Called in the child before it becomes a rank. Each host stays on one core."""
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[host % len(cores)]})

    def slow_down(self, host, process):
        """Threads of the process that have begun to run kernels get the host's part of the cores."""
        if host not in self.folders:
            return
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                if (process, thread) in self.slowed:
                    continue
                with open(f"/proc/{process}/task/{thread}/comm") as file:
                    if file.read().strip() != self.KERNELS:
                        continue
                self.write(self.folders[host], "cgroup.threads" if self.unified else "tasks", thread)
                self.slowed.add((process, thread))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended

    def remove(self):
        if self.all:
            self.write(self.base, "cgroup.procs", os.getpid())
        for folder in [*self.folders.values(), *([self.all] if self.all else [])]:
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)


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


def run_on_hosts(command, hosts, network, groups):
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
                preexec_fn=lambda host=host: groups.enter(host)))
        while any(rank.poll() is None for rank in ranks):
            for host, rank in zip(hosts, ranks):
                groups.slow_down(host, rank.pid)
            time.sleep(0.05)
        failed = [rank.returncode for rank in ranks]
        if any(failed):
            raise SystemExit(f"closed_loop: ranks ended with {failed}")
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGKILL)
                rank.wait()
