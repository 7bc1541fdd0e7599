// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import java.awt.Color;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.CategoryChart;
import org.knowm.xchart.CategoryChartBuilder;
import org.knowm.xchart.style.Styler;

/// Draws loads beside the ceilings and peers of one run: `LoadsChart LOG PNG TITLE FILE`, where LOG
/// is what `run.sh bench` printed and FILE the name of the file whose loads count.
///
/// Each bar is the median of the log's lines for it; a ceiling is the best one.
public final class LoadsChart {
  /// Two words before the rate: who loaded, and from where.
  private static final Pattern LOAD =
      Pattern.compile("^([^\t\n]+)\t(hot|cold)\t([0-9.]+) GB/s", Pattern.MULTILINE);

  private static final Pattern OURS =
      Pattern.compile(
          "^gantry ([a-z ]+)\t(hot|cold)\t([0-9.]+) GB/s\t([^,\n]+),", Pattern.MULTILINE);
  private static final Pattern LINK =
      Pattern.compile("^pcie H2D ([0-9.]+) GB/s", Pattern.MULTILINE);
  private static final Pattern DISK =
      Pattern.compile("^O_DIRECT read threads \\d+ ([0-9.]+) GB/s", Pattern.MULTILINE);
  private static final List<String> FROM = List.of("page cache", "disk");

  private static final Map<String, Color> COLORS =
      Map.of("ceiling", new Color(0xB0B0B0), "Gantry", new Color(0x2F6DB5));
  private static final Color[] PEERS = {
    new Color(0xE08A2E), new Color(0xE8B26F), new Color(0xF0D3AA), new Color(0xC96A1B)
  };

  private LoadsChart() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length != 4) {
      System.err.println("usage: LoadsChart LOG PNG TITLE FILE");
      System.exit(64);
    }
    String log = Files.readString(Path.of(arguments[0]));
    Map<String, List<Double>> bars = bars(log, arguments[3]);
    CategoryChart chart =
        new CategoryChartBuilder()
            .width(900)
            .height(380)
            .title(arguments[2])
            .yAxisTitle("GB/s")
            .theme(Styler.ChartTheme.Matlab)
            .build();
    int peers = 0;
    for (Map.Entry<String, List<Double>> bar : bars.entrySet()) {
      Color color = COLORS.get(bar.getKey());
      chart
          .addSeries(bar.getKey(), FROM, bar.getValue())
          .setFillColor(color != null ? color : PEERS[peers++ % PEERS.length]);
      System.out.println(bar.getKey() + "\t" + bar.getValue());
    }
    chart.getStyler().setLabelsVisible(true).setLabelsPosition(1.0).setAvailableSpaceFill(0.9);
    chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideE);
    chart.getStyler().setYAxisMin(0.0).setYAxisMax(60.0);
    BitmapEncoder.saveBitmap(chart, arguments[1], BitmapEncoder.BitmapFormat.PNG);
  }

  /// By name: the rate from the page cache, then from the disk.
  private static Map<String, List<Double>> bars(String log, String file) {
    Map<String, Map<String, List<Double>>> rates = new LinkedHashMap<>();
    Matcher ours = OURS.matcher(log);
    while (ours.find()) {
      boolean counts = ours.group(1).equals(ours.group(2).equals("hot") ? "by evidence" : "staged");
      if (counts && ours.group(4).equals(file)) {
        add(rates, "Gantry", ours.group(2), ours.group(3));
      }
    }
    Matcher peers = LOAD.matcher(log);
    while (peers.find()) {
      if (!peers.group(1).startsWith("gantry ")) {
        add(rates, peers.group(1), peers.group(2), peers.group(3));
      }
    }
    Map<String, List<Double>> bars = new LinkedHashMap<>();
    bars.put("ceiling", List.of(best(LINK, log), best(DISK, log)));
    rates.forEach((name, modes) ->
        bars.put(
            name,
            List.of(
                median(modes.getOrDefault("hot", List.of())),
                median(modes.getOrDefault("cold", List.of())))));
    return bars;
  }

  private static void add(
      Map<String, Map<String, List<Double>>> rates, String name, String mode, String rate) {
    rates
        .computeIfAbsent(name, _ -> new LinkedHashMap<>())
        .computeIfAbsent(mode, _ -> new ArrayList<>())
        .add(Double.parseDouble(rate));
  }

  private static double best(Pattern ceiling, String log) {
    return ceiling
        .matcher(log)
        .results()
        .mapToDouble(line -> Double.parseDouble(line.group(1)))
        .max()
        .orElse(0);
  }

  private static double median(List<Double> rates) {
    List<Double> sorted = rates.stream().sorted().toList();
    return sorted.isEmpty() ? 0 : sorted.get(sorted.size() / 2);
  }
}
