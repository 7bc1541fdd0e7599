// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.page.Chart;
import dev.gantry.benchmarks.page.Page;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Draws what [OverlapBench] saw: `timeline CSV HTML TITLE`. When batches were read, one line
/// for the even ones and one for the odd, above the kernels that used them.
public final class TimelineChart {
  /// The first batch at which the loop has found its pace.
  private static final int FIRST_BATCH = 100;

  private static final int BATCHES = 14;
  private static final List<String> ROWS =
      List.of("reading even batches", "reading odd batches", "kernels");

  private TimelineChart() {}

  public static void main(String[] arguments) throws IOException {
    List<double[]> steps =
        Files.readAllLines(Path.of(arguments[0])).stream()
            .skip(1 + FIRST_BATCH)
            .limit(BATCHES)
            .map(TimelineChart::numbers)
            .toList();
    double start = steps.getFirst()[1];
    List<Chart.Box> boxes = new ArrayList<>();
    for (int i = 0; i < steps.size(); i++) {
      double[] step = steps.get(i);
      boxes.add(new Chart.Box(ROWS.get(i % 2), Chart.OURS, step[1] - start, step[2] - start));
      boxes.add(new Chart.Box(ROWS.get(2), Chart.PEER, step[3] - start, step[4] - start));
    }
    Files.writeString(
        Path.of(arguments[1]), Page.of(new Chart.Timeline(arguments[2], ROWS, boxes)));
  }

  private static double[] numbers(String line) {
    String[] parts = line.split(",", -1);
    double[] numbers = new double[parts.length];
    for (int i = 0; i < parts.length; i++) {
      numbers[i] = Double.parseDouble(parts[i]);
    }
    return numbers;
  }
}
