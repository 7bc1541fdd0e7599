// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.benchmarks.result.Absence;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Machine;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.ResultJson;
import dev.gantry.benchmarks.result.Run;
import dev.gantry.benchmarks.result.Spread;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// A bench as one HTML page: charts, all figures as tables, and the JSON itself. Chart.js draws the charts; its script is
/// in the page, which needs nothing from elsewhere, and is well-formed XML besides.
public final class Page {
  public static final String FILE = "bench.html";
  public static final String DATA = "bench.json";

  private static final String LIBRARY = "chart.js";
  private static final int ROW_PIXELS = 26;
  private static final int AXIS_PIXELS = 52;

  private final Result result;
  private final StringBuilder html = new StringBuilder();

  private Page(Result result) {
    this.result = result;
  }

  /// @return the page
  public static String of(Result result) {
    return new Page(result).draw();
  }

  /// @return a page of one chart
  public static String of(Chart chart) {
    StringBuilder html = new StringBuilder();
    begin(html, chart.title());
    html.append("<h1>").append(text(chart.title())).append("</h1>\n").append(chart(chart));
    return end(html);
  }

  /// In words.
  static String heat(Heat heat) {
    return switch (heat) {
      case HOT -> "page cache hot";
      case COLD -> "cold, from the disk";
      case NONE -> "";
    };
  }

  private String draw() {
    begin(html, "Gantry bench");
    header();
    loads();
    firstLoads();
    trace();
    grids();
    ceilings();
    table();
    absences();
    html.append("<script type=\"application/json\" id=\"bench\">\n")
        .append(json(ResultJson.text(result)))
        .append("\n</script>\n");
    return end(html);
  }

  private static void begin(StringBuilder html, String title) {
    html.append(
            "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n")
        .append("<meta charset=\"utf-8\"/>\n")
        .append(
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>")
        .append(text(title))
        .append("</title>\n<style>\n")
        .append(resource("page.css"))
        .append("</style>\n</head>\n<body>\n");
  }

  private static String end(StringBuilder html) {
    Properties library = new Properties();
    try {
      library.load(
          new StringReader(
              resource("/META-INF/maven/org.webjars.npm/" + LIBRARY + "/pom.properties")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String script =
        resource(
            "/META-INF/resources/webjars/"
                + LIBRARY
                + "/"
                + library.getProperty("version")
                + "/dist/chart.umd.min.js");
    script(html, script.replaceAll("(?m)^//# sourceMappingURL=.*$", ""));
    script(html, resource("page.js"));
    return html.append("</body>\n</html>\n").toString();
  }

  /// Puts a script into the page, as HTML and as XML.
  private static void script(StringBuilder html, String script) {
    html.append("<script>//<![CDATA[\n").append(script).append("\n//]]></script>\n");
  }

  private static String resource(String name) {
    try (InputStream in = Objects.requireNonNull(Page.class.getResourceAsStream(name), name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Text for the inside of an element, or of an attribute in double quotes.
  private static String text(String text) {
    return text.replaceAll("\\p{Cntrl}", " ")
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\"", "&quot;");
  }

  /// JSON as the inside of a `script` element: no tag can end it, and XML reads it as HTML does.
  private static String json(String json) {
    return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e");
  }

  private static String chart(Chart chart) {
    return "<div class=\"chart\" style=\"height:"
        + (AXIS_PIXELS + ROW_PIXELS * chart.height())
        + "px\"><canvas role=\"img\" aria-label=\""
        + text(chart.title())
        + "\"></canvas><script type=\"application/json\">"
        + json(ResultJson.GSON.toJson(chart))
        + "</script></div>\n";
  }

  private void header() {
    Run run = result.run();
    Machine machine = result.machine();
    html.append("<h1>Gantry bench</h1>\n");
    paragraph(
        "muted",
        run.version()
            + (run.commit().isEmpty() ? "" : ", commit " + run.commit())
            + ", "
            + run.date().toString().replace('T', ' ').replace("Z", " UTC")
            + String.format(Locale.ROOT, "; took %.0f s", run.seconds()));
    html.append("<p><code>").append(text(run.command())).append("</code></p>\n");
    paragraph(
        "",
        String.format(
            Locale.ROOT,
            "%s, %d cores, %.0f GiB of memory, %s, files on %s, %s. Loads go to %s.",
            machine.cpu(),
            machine.cores(),
            machine.memoryBytes() / (double) (1L << 30),
            machine.kernel(),
            machine.fileSystem(),
            machine.java(),
            run.device()));
    paragraph(
        "",
        machine.gpus().isEmpty()
            ? "No GPU."
            : "GPUs: "
                + String.join(", ", machine.gpus())
                + "; "
                + machine.driver()
                + (machine.cufile().isEmpty() ? "" : "; " + machine.cufile())
                + (machine.directAbsence().isEmpty()
                    ? ""
                    : "; no direct transport: " + machine.directAbsence()));
    paragraph(
        "muted",
        "GB are 10⁹ bytes. Bars are medians, whiskers the least and the greatest repeat. Contenders"
            + " of a chart ran in turns, and so did their ceiling. Files hold random bytes. Hot:"
            + " all of the file is in the page cache; cold: the kernel says that none of it is."
            + (run.shortened() > 0
                ? String.format(
                    Locale.ROOT,
                    " %d points have fewer than %d repeats, because %d s were used up.",
                    run.shortened(),
                    run.repeats(),
                    run.budgetSeconds())
                : ""));
  }

  private void paragraph(String style, String text) {
    html.append(style.isEmpty() ? "<p>" : "<p class=\"" + style + "\">")
        .append(text(text))
        .append("</p>\n");
  }

  private void title(String text) {
    html.append("<h2>").append(text(text)).append("</h2>\n");
  }

  private void card(String title, Chart chart) {
    html.append("<div class=\"card\"><h3>")
        .append(text(title))
        .append("</h3>\n")
        .append(chart(chart))
        .append("</div>\n");
  }

  private void key(String... entries) {
    html.append("<p class=\"muted key\">");
    for (int i = 0; i < entries.length; i += 2) {
      html.append("<i style=\"background:var(--")
          .append(entries[i])
          .append(")\"></i>")
          .append(text(entries[i + 1]));
    }
    html.append("</p>\n");
  }

  private void loads() {
    title("Loads against the ceiling");
    key("ceiling", "ceiling", "ours", "Gantry", "peer", "others");
    html.append("<div class=\"charts\">\n");
    for (Charts.LoadKey key : Charts.loadKeys(result)) {
      card(key.what() + ", " + heat(key.heat()), Charts.loads(result, key));
    }
    html.append("</div>\n");
  }

  private void firstLoads() {
    if (!result.points(Group.FIRST_LOAD).isEmpty()) {
      title("The first load of a process");
      for (Point point : result.points(Group.FIRST_LOAD)) {
        paragraph(
            "",
            String.format(
                Locale.ROOT,
                "%s: %s in %.2f s (median).",
                point.name(),
                point.what(),
                point.bytes() / 1e9 / point.median()));
      }
      html.append("<div class=\"charts\">\n");
      card(
          result.points(Group.FIRST_LOAD).getFirst().what() + ", page cache hot",
          Charts.group(result, Group.FIRST_LOAD));
      html.append("</div>\n");
    }
  }

  private void trace() {
    title("One load, looked at closely");
    if (!result.trace().stages().isEmpty()) {
      paragraph("muted", result.trace().what() + ", page cache hot, under the flight recorder.");
    }
    if (result.trace().spans().isEmpty()) {
      paragraph("muted", "No timeline: " + result.trace().absence() + ".");
    } else {
      key("ours", "read", "copy", "copy to the GPU", "wait", "wait");
      paragraph("muted", Charts.shares(result.trace()));
      card("What each thread did", Charts.timeline(result.trace()));
    }
    if (!result.trace().stages().isEmpty()) {
      html.append("<div class=\"charts\">\n");
      card("Where the time goes", Charts.stages(result.trace()));
      html.append("</div>\n");
    }
  }

  private void grids() {
    for (Heat heat : Heat.values()) {
      List<Point> points =
          result.points(Group.GRID).stream()
              .filter(point -> point.heat() == heat)
              .sorted(
                  Comparator.comparingLong((Point point) -> point.parameter(Point.REQUEST_BYTES))
                      .thenComparingLong(point -> point.parameter(Point.THREADS)))
              .toList();
      if (!points.isEmpty()) {
        title("Request size and threads, " + heat(heat));
        paragraph("muted", "Gantry, GB/s; the stronger the colour, the faster.");
        grid(points);
      }
    }
  }

  /// A row for each size of a request, and a column for each number of threads. The best cell is bold.
  private void grid(List<Point> points) {
    List<Long> columns =
        points.stream().map(point -> point.parameter(Point.THREADS)).distinct().toList();
    html.append("<div class=\"scroll card\"><h3>")
        .append(text(points.getFirst().what()))
        .append("</h3><table>\n<tr><th>request</th>");
    columns.forEach(count ->
        html.append("<th class=\"number\">")
            .append(Threads.count(count.intValue()))
            .append("</th>"));
    html.append("</tr>\n");
    double best = points.stream().mapToDouble(Point::median).max().orElse(0);
    Map<Long, List<Point>> rows =
        points.stream()
            .collect(
                Collectors.groupingBy(
                    point -> point.parameter(Point.REQUEST_BYTES),
                    TreeMap::new,
                    Collectors.toList()));
    rows.forEach((request, row) -> {
      html.append("<tr>");
      cell("", request < 1 << 20 ? (request >> 10) + " KiB" : (request >> 20) + " MiB");
      for (long threads : columns) {
        Optional<Point> point =
            row.stream().filter(one -> one.parameter(Point.THREADS) == threads).findFirst();
        double median = point.map(Point::median).orElse(0.0);
        html.append(
            String.format(
                Locale.ROOT,
                "<td class=\"number%s\" style=\"background:color-mix(in srgb,var(--ours)"
                    + " %.0f%%,transparent)\">%s</td>",
                median == best ? " best" : "",
                5 + 55 * median / best,
                point.map(one -> Spread.rate(one.median())).orElse("-")));
      }
      html.append("</tr>\n");
    });
    html.append("</table></div>\n");
  }

  private void ceilings() {
    title("Ceilings");
    html.append("<div class=\"charts\">\n");
    card("What this machine can do", Charts.ceilings(result));
    html.append("</div>\n");
  }

  private void table() {
    title("All figures");
    html.append("<div class=\"scroll\"><table>\n<tr>");
    for (String heading :
        new String[] {
          "", "what", "cache", "by", "GB/s", "least", "most", "runs", "of ceiling", ""
        }) {
      html.append("<th>").append(heading).append("</th>");
    }
    html.append("</tr>\n");
    int number = 0;
    for (Point point : result.points()) {
      row(point, number++);
    }
    html.append("</table></div>\n");
  }

  private void row(Point point, int number) {
    Spread spread = point.spread();
    html.append("<tr data-point=\"").append(number).append("\">");
    cell("", point.group().title());
    cell("", point.what());
    cell("", point.heat() == Heat.NONE ? "" : point.heat().toString());
    cell("", point.name());
    for (double rate : new double[] {spread.median(), spread.least(), spread.most()}) {
      cell("number", Spread.rate(rate));
    }
    cell("number", Integer.toString(point.repeats().size()));
    OptionalDouble ratio = result.ratio(point);
    cell(
        "number", ratio.isPresent() ? String.format(Locale.ROOT, "%.2f", ratio.getAsDouble()) : "");
    cell("muted", point.note());
    html.append("</tr>\n");
  }

  private void cell(String style, String text) {
    html.append(style.isEmpty() ? "<td>" : "<td class=\"" + style + "\">")
        .append(text(text))
        .append("</td>");
  }

  private void absences() {
    if (!result.absences().isEmpty()) {
      title("Not measured");
      html.append("<ul>\n");
      for (Absence absence : result.absences()) {
        html.append("<li>")
            .append(text(absence.what() + ": " + absence.reason()))
            .append("</li>\n");
      }
      html.append("</ul>\n");
    }
  }
}
