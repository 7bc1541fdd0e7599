// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.time.Instant;
import java.util.List;
import java.util.Map;

/// Results to test with, which no machine has measured.
public final class Results {
  private static final String FILE = "8 MiB in 1 tensor";

  private Results() {}

  /// The result of a GPU host that has everything, with text that could be taken for markup.
  public static Result full() {
    return new Result(
        new Run(
            "gantry 1.0",
            "abc1234",
            "gantry bench --file '</script><b>&.safetensors'",
            Instant.parse("2026-01-02T03:04:05Z"),
            "cuda:0",
            true,
            3,
            42,
            40.5,
            1),
        new Machine(
            "CPU of <tests> & \"others\"",
            16,
            128L << 30,
            "Linux 6.18",
            "ext4",
            "JVM 25",
            List.of("GPU A"),
            "CUDA 13.0",
            "libcufile.so.0 1.15",
            "no nvidia-fs"),
        List.of(
            point(Group.CEILING, "memory copy, 2 threads", "memory", Heat.NONE, "", 20, 22, 21),
            point(Group.CEILING, "O_DIRECT read, 8 threads", "other", Heat.COLD, "", 9, 9, 9),
            point(Group.CEILING, "O_DIRECT read, 8 threads", FILE, Heat.COLD, "", 4, 4.2, 3.9),
            point(Group.CEILING, "PCIe, host to device", FILE, Heat.NONE, "", 55, 55.5, 54),
            load("Gantry", Heat.HOT, "PCIe, host to device", 50, 51, 49),
            load("<b>peer</b> & \"co\"", Heat.HOT, "PCIe, host to device", 7, 8, 6.5),
            load("Gantry", Heat.COLD, "O_DIRECT read, 8 threads", 3.9, 4),
            point(Group.FIRST_LOAD, "Gantry, from opening the session", FILE, Heat.HOT, "", 0.01),
            cell(1 << 20, 1, 5),
            cell(1 << 20, 4, 15),
            cell(256 << 10, 1, 2),
            cell(256 << 10, 4, 0.512),
            way("threads", 1.5),
            way("batches", 2.75)),
        List.of(new Absence("transport gds", "no <nvidia-fs>")),
        new Trace(
            FILE,
            Heat.HOT,
            8 << 20,
            List.of(new Trace.Stage("read, until the last byte is there", 1.25)),
            List.of(
                new Trace.Span("reader-0", "Read", 0.1, 0.6),
                new Trace.Span("reader-0", "Copy", 0.6, 0.9),
                new Trace.Span("reader-1", "Wait", 0.1, 1.2)),
            ""));
  }

  private static Point load(String name, Heat heat, String ceiling, double... rates) {
    return point(Group.LOAD, name, FILE, heat, ceiling, rates);
  }

  private static Point way(String name, double rate) {
    return new Point(
        Group.CUFILE,
        name + ", 64 KiB, depth 8",
        FILE,
        Heat.HOT,
        8 << 20,
        List.of(rate),
        "",
        Map.of(Point.REQUEST_BYTES, 64L << 10, "depth", 8L, "aligned", 1L),
        "");
  }

  private static Point cell(long request, long threads, double rate) {
    return new Point(
        Group.GRID,
        "Gantry, " + request + ", " + threads,
        FILE,
        Heat.HOT,
        8 << 20,
        List.of(rate),
        "",
        Map.of(Point.REQUEST_BYTES, request, Point.THREADS, threads),
        "");
  }

  private static Point point(
      Group group, String name, String what, Heat heat, String ceiling, double... rates) {
    return new Point(
        group,
        name,
        what,
        heat,
        8 << 20,
        java.util.Arrays.stream(rates).boxed().toList(),
        ceiling,
        Map.of(),
        "");
  }
}
