#!/usr/bin/env python3
"""The Python package: its answers are those of the command, its errors carry all problems, and Python stays awake."""

import ast
import doctest
import importlib.util
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import shardwright as sw

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TRACES = SOURCE / "tests/calibration/traces/files/nanogpt"
COMMAND = os.environ["SHARDWRIGHT_COMMAND"]
JOB = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "global_batch": 64, "seq_len": 8192}


def answer_of_the_command(*words):
    return json.loads(subprocess.run([COMMAND, *words, "--json"], check=True, capture_output=True).stdout)


def without_wall_time(document):
    document = json.loads(json.dumps(document))
    document.get("search", {}).pop("wall_s", None)
    return document


class Answers(unittest.TestCase):
    def test_are_those_of_the_command(self):
        options = [word for name, value in JOB.items() for word in ("--" + name.replace("_", "-"), str(value))]
        self.assertEqual(without_wall_time(sw.plan(**JOB)), without_wall_time(answer_of_the_command("plan", *options)))

    def test_of_a_plan_found_are_those_of_its_simulation(self):
        best = sw.plan(**JOB, fix={"tp": [2, 4], "pp": 1}, forbid={"zero": 3}).plans[0]
        self.assertIn(best.plan.tp, (2, 4))
        again = sw.simulate(plan=best)
        self.assertEqual(again.step, best.step)
        self.assertEqual(again.scenario(), best.scenario())
        self.assertEqual(pickle.loads(pickle.dumps(again)).scenario(), best.scenario())
        self.assertEqual(sw.compare(best, again)["verdict"], "A and B take the same time.")

    def test_of_other_kinds_show_what_they_say(self):
        forecast = sw.forecast(sw.plan(**JOB).plans[0], tokens="15B")
        self.assertIn(f"{forecast.days.p50:.6g}", repr(forecast))
        self.assertIn("days.p50", forecast._repr_html_())
        for listing, name in ((sw.models(), "models"), (sw.clusters(), "clusters"), (sw.stacks(), "stacks")):
            self.assertIn(listing[name][0].name, repr(listing))
            self.assertEqual(len(listing.rows()), len(listing[name]))
        self.assertIn("description", repr(sw.schema("plan")))

    def test_of_a_plan_for_fewer_ranks_can_be_simulated(self):
        smaller = sw.replan(sw.plan(**JOB).plans[0], ranks=8)
        self.assertEqual(smaller.ranks, 8)
        self.assertEqual(sw.simulate(smaller.plan).step, smaller.plan.step)

    def test_replace_files_where_they_may(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            page.write_text("before")
            with self.assertRaises(sw.InputError) as refused:
                sw.plan(**JOB, html=page)
            self.assertIn("force", str(refused.exception))
            self.assertNotIn("--force", str(refused.exception))
            sw.plan(**JOB, html=page, force=True)
            self.assertIn("<html", page.read_text())

    def test_change_by_attributes(self):
        model = sw.model("llama3-8b")
        model.layers = 48
        self.assertEqual((model["layers"], model.layers), (48, 48))
        with self.assertRaisesRegex(AttributeError, "did you mean 'layers'"):
            model.layer = 48

    def test_follow_profiles_that_were_changed(self):
        model, cluster = sw.model("llama3-8b"), sw.cluster("dgx-h100")
        model.update(name="half-as-deep", layers=model.layers // 2)
        cluster["accelerator"]["price_dollars_per_hour"]["value"] *= 2
        whole = sw.simulate(**JOB, tp=2)
        half = sw.simulate(**{**JOB, "model": model, "cluster": cluster}, tp=2)
        self.assertTrue(0.4 < half.step / whole.step < 0.7)
        patched = sw.simulate(**{**JOB, "cluster": {"base": "dgx-h100", "node": {"nic": {"per_node": 4}}}}, tp=2)
        self.assertEqual(patched.scenario()["cluster"]["node"]["nic"]["per_node"]["value"], 4)

    def test_of_ranges_have_a_point_for_each_size(self):
        scale = sw.scale(**{**JOB, "gpus": range(8, 33)})
        self.assertEqual([point.gpus for point in scale.points], [8, 16, 32])
        self.assertEqual(sw.sweep("global-batch", plan=scale.plans[0], values=[64, 128]).points[1].value, 128)

    def test_of_lists_have_a_point_for_each_number(self):
        scale = sw.scale(**{**JOB, "gpus": [24, 8]})
        self.assertEqual([point.gpus for point in scale.points], [8, 24])
        self.assertIn("24", repr(scale))

    def test_show_the_best_few_plans(self):
        found = sw.plan(**JOB)
        for shown, line in ((repr(found), "\n"), (found._repr_html_(), "<tr>")):
            self.assertLess(len(shown), 3000)
            lines = 1 + min(5, len(found.plans)) + (line == "\n" and len(found.plans) > 5)
            self.assertEqual(shown.count(line) + (line == "\n"), lines)
            self.assertIn(f"{found.plans[0].mfu:.1%}".replace("%", " %"), shown)
        self.assertLess(len(repr(found.plans[0])), 500)

    def test_exist_for_each_command_but_those_that_stay(self):
        self.assertEqual(set(sw._COMMANDS), {words for words, _ in sw._FUNCTIONS.values()})

    def test_without_a_plan_that_fits_say_so(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = sw.plan(model="llama3-405b", cluster="dgx-h100", gpus=8, global_batch=8, seq_len=8192)
        self.assertEqual(found.plans, [])
        self.assertIn("memory", str(told[0].message))
        self.assertTrue(found.infeasible)

    def test_of_an_export_are_text_with_notes(self):
        best = sw.plan(**JOB).plans[0]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best.save(pathlib.Path(folder) / "plan.json")
            text = subprocess.run([COMMAND, "export", f"{folder}/plan.json", "--format", "megatron"],
                                  check=True, capture_output=True, text=True).stdout
            self.assertEqual(sw.export(best, format="megatron"), text)


class Logs(unittest.TestCase):
    def test_have_a_row_for_each_step(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "train.log"
            line = "2025-02-05 18:31:{:02},000 - root - INFO - step: {}  loss: {}  memory: 42.15GiB(53.28%)  tps: 7,000  mfu: 40.5%\n"
            log.write_text("".join(line.format(step, step, 9 - step) for step in range(1, 30)))
            report = sw.import_traces(log)
        self.assertEqual([row["loss"] for row in report.rows()], [9 - step for step in range(1, 30)])
        self.assertIn("and 9 further rows", repr(report))
        self.assertEqual(report._repr_html_().count("<tr>"), 21)


class Collectives(unittest.TestCase):
    TABLE = """# Collective test starting: all_gather_perf
#  Rank  0 Group  0 Pid 1 on host device  0 [0x10] NVIDIA H100
#  Rank  1 Group  0 Pid 1 on host device  1 [0x11] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong
    33554432       8388608     float    none      -1   240.5   139.5    69.8      0
"""

    def test_show_what_nccl_tests_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "all_gather.txt"
            file.write_text(self.TABLE)
            report = sw.import_traces(file)
            calibrated = sw.calibrate([file], cluster="dgx-h100", out=pathlib.Path(folder) / "cluster.json")
        self.assertEqual(report.rows()[0]["kind"], "all_gather")
        self.assertIn("33554432", repr(report))
        self.assertIn("<td>all_gather</td>", report._repr_html_())
        with self.assertRaisesRegex(ValueError, "no traces and no times"):
            report.plot()
        self.assertNotEqual(repr(calibrated), "")


class Stacks(unittest.TestCase):
    def test_show_their_best_plans_which_can_be_exported(self):
        found = sw.plan(**JOB, stack="megatron-core,fsdp2")
        best = {row.stack: row.best for row in found.rows()}
        self.assertIn(f"{best['fsdp2'].step:.4g}", repr(found))
        self.assertIn(best["fsdp2"].layout, found._repr_html_())
        self.assertIn("planned for fsdp2", sw.export(best["fsdp2"], format="torchtitan"))
        self.assertEqual(sw.simulate(best["fsdp2"]).step, best["fsdp2"].step)


class Words(unittest.TestCase):
    def test_of_the_command_may_have_underscores(self):
        job = {**JOB, "gpus": 8, "global_batch": 8}
        self.assertEqual(sw.sweep("seq_len", **job).quantity, sw.sweep("seq-len", **job).quantity)

    def test_of_problems_name_the_argument_and_no_temporary_file(self):
        with self.assertRaises(sw.InputError) as caught:
            sw.simulate({"schema": "shardwright/plan", "version": 1})
        self.assertTrue(str(caught.exception).startswith("plan: /model"), str(caught.exception))
        self.assertEqual(caught.exception.source, "plan")


class Launches(unittest.TestCase):
    def test_show_the_layout_of_their_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "train.sh"
            script.write_text(
                "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
                "--seq-length 4096 --micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 2 --bf16\n")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                report = sw.import_traces(script)
        self.assertIn("dp 8, tp 2", repr(report))
        self.assertIn("128 sequences of 4,096 tokens", report._repr_html_())


class Plan(unittest.TestCase):
    def test_stands_without_a_keyword(self):
        best = sw.simulate(**JOB, tp=2)
        self.assertEqual(sw.explain(best), sw.explain(plan=best))
        self.assertEqual(sw.simulate(best).step, best.step)
        self.assertEqual(sw.forecast(best, tokens="1T"), sw.forecast(plan=best, tokens="1T"))


class Errors(unittest.TestCase):
    def test_carry_all_problems(self):
        with self.assertRaises(sw.InputError) as caught:
            sw.plan(model="llama3-9b", cluster="dgx-h10", gpus="many", global_batch=64)
        self.assertEqual({problem.where.split()[0] for problem in caught.exception.problems},
                         {"model", "cluster", "gpus", "seq_len"})
        self.assertNotIn("--", str(caught.exception))
        self.assertIsInstance(caught.exception, ValueError)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.source, again.problems),
                         (str(caught.exception), caught.exception.source, caught.exception.problems))

    def test_name_the_nearest_argument(self):
        with self.assertRaisesRegex(TypeError, r"plan\(\) takes at most 0 arguments"):
            sw.plan("llama3-8b", "dgx-h100")
        with self.assertRaisesRegex(TypeError, "did you mean 'global_batch'"):
            sw.plan(**JOB, global_bach=8)

    def test_name_the_nearest_member(self):
        with self.assertRaisesRegex(AttributeError, "did you mean 'step'"):
            sw.Record(step_s=1.0, mfu=0.5).stepp
        with self.assertRaisesRegex(AttributeError, "has no 'colour'; it has step_s, mfu"):
            sw.Record(step_s=1.0, mfu=0.5).colour

    def test_name_all_arguments_that_are_missing(self):
        with self.assertRaises(sw.InputError) as refused:
            sw.fit()
        self.assertEqual([problem.where for problem in refused.exception.problems], ["kind", "files"])

    def test_of_a_callback_end_the_command(self):
        def callback(share, text):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            sw.plan(model="llama3-405b", cluster="dgx-h100", gpus=16384, global_batch=2048, seq_len=8192, progress=callback)


class Threads(unittest.TestCase):
    def test_of_python_go_on_and_may_call_too(self):
        steps, counted, ended = [], 0, threading.Event()
        workers = [threading.Thread(target=lambda: steps.append(sw.plan(**JOB).plans[0].step)) for _ in range(2)]
        watcher = threading.Thread(target=lambda: ([worker.join() for worker in workers], ended.set()))
        for thread in (*workers, watcher):
            thread.start()
        while not ended.wait(0.001):
            counted += 1
        self.assertEqual(len(set(steps)), 1)
        self.assertGreater(counted, 10)

    def test_stop_at_ctrl_c(self):
        script = ("import os, signal, shardwright as sw\n"
                  "try: sw.plan(model='llama3-405b', cluster='dgx-h100', gpus=16384, global_batch=2048, seq_len=8192,"
                  " progress=lambda share, text: os.kill(os.getpid(), signal.SIGINT))\n"
                  "except KeyboardInterrupt: print('stopped')\n")
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout.strip()), (0, "stopped"), ended.stderr)

    def test_stop_the_executor_that_measures_this_machine(self):
        script = ("import os, signal, threading, shardwright as sw\n"
                  "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
                  "try: sw.plan(model='tiny-llama', cluster='here', seq_len=64)\n"
                  "except KeyboardInterrupt: print('stopped')\n")
        with tempfile.TemporaryDirectory() as cache:
            ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                                   env={**os.environ, "XDG_CACHE_HOME": cache})
            self.assertFalse(pathlib.Path(cache, "shardwright", "here.json").exists())
        self.assertEqual((ended.returncode, ended.stdout.strip()), (0, "stopped"), ended.stderr)


@unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
class Tables(unittest.TestCase):
    def test_have_a_line_for_each_plan(self):
        found = sw.plan(**JOB)
        table = found.to_pandas()
        self.assertEqual(list(table["step_s"]), [plan.step for plan in found.plans])
        self.assertEqual(list(table["plan.tp"]), [plan.plan.tp for plan in found.plans])
        self.assertEqual(len(sw.models().to_pandas()), len(sw.models()["models"]))


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class Plots(unittest.TestCase):
    def setUp(self):
        import matplotlib

        matplotlib.use("agg")

    def test_show_the_figures_of_the_result(self):
        step = sw.simulate(**JOB, tp=2, pp=2)
        shown = sum(bar.get_width() for bar in step.plot_breakdown().patches)
        self.assertAlmostEqual(shown / step.step, 1.0, delta=0.03)
        ends = [path.vertices[:, 0].max() for rows in step.plot_timeline().collections for path in rows.get_paths()]
        self.assertAlmostEqual(max(ends) / step.step, 1.0, delta=0.01)
        # A row for each pipeline stage that was simulated, whatever the number of its streams.
        axes = step.plot_timeline()
        self.assertEqual(len(axes.get_yticks()), 2)
        legend = axes.get_legend()
        self.assertEqual([text.get_text() for text in legend.get_texts()], ["forward", "backward", "optimizer", "communication and copies"])
        self.assertEqual(len({patch.get_facecolor() for patch in legend.get_patches()}), 4)
        # Edges would make streams look busier than they are.
        self.assertEqual({width for bars in axes.collections for width in bars.get_linewidth()}, {0})
        found = sw.plan(**JOB)
        self.assertEqual(len(found.plot_front().lines[0].get_xdata()), len(found.front))
        trace = sw.import_traces([str(TRACES / "rank0.json.gz"), str(TRACES / "rank1.json.gz")])
        shown = sum(bar.get_width() for bar in trace.plot().patches)
        named = ("gemm", "attention", "elementwise", "collective", "memory_copy", "other")
        self.assertAlmostEqual(shown / 1e3, sum(file.time[f"{name}_s"] for file in trace.files for name in named))
        self.assertEqual(trace._repr_html_().count("<tr>"), 3)
        self.assertIn("rank1.json.gz", repr(trace))
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "train.log"
            log.write_text("".join(f"iteration {step}/ 9 | elapsed time per iteration (ms): {step}.0 |\n" for step in range(1, 4)))
            drawn = sw.import_traces(log).plot().lines[0]
            self.assertTrue(repr(sw.import_traces([TRACES / "rank0.json.gz", log])).endswith("and 1 in .logs"))
        self.assertEqual(list(drawn.get_xdata()), [1, 2, 3])
        self.assertEqual(list(drawn.get_ydata()), [0.001, 0.002, 0.003])
        scale = sw.scale(**{**JOB, "gpus": range(8, 17)})
        self.assertEqual(list(scale.plot().lines[0].get_ydata()), [point.tokens_per_s for point in scale.points])
        swept = sw.sweep("scale-out-bandwidth", plan=step, values=[25, 50, 100]).plot()
        swept.figure.canvas.draw()
        self.assertEqual([text.get_text() for text in swept.get_xticklabels()], ["25", "50", "100"])
        low, high = swept.get_ylim()
        self.assertGreaterEqual(sum(low <= tick <= high for tick in swept.get_yticks()), 2)


class Documentation(unittest.TestCase):
    def test_examples_are_true(self):
        self.assertEqual(doctest.testmod(sw).failed, 0)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            result = doctest.testfile(str(SOURCE / "docs/python.md"), module_relative=False,
                                      optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            os.chdir(SOURCE)
        self.assertGreater(result.attempted, 5)
        self.assertEqual(result.failed, 0)

    def test_of_types_names_every_function(self):
        stub = ast.parse(pathlib.Path(sw.__file__).with_name("__init__.pyi").read_text())
        functions = {each.name for each in stub.body if isinstance(each, ast.FunctionDef)}
        self.assertEqual(functions, set(sw._FUNCTIONS))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=1)
