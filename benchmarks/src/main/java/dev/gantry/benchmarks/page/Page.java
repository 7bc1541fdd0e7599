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
import dev.gantry.benchmarks.result.Trace;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.Properties;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/// A bench as one HTML page: charts, all figures as tables, and the JSON itself. Chart.js draws
/// the charts. The page includes its script and loads nothing else. The page is also well-formed
/// XML.
public final class Page {
  public static final String FILE = "bench.html";
  public static final String DATA = "bench.json";

  private static final String LIBRARY = "chart.js";
  private static final int ROW_PIXELS = 26;
  private static final int AXIS_PIXELS = 52;

  /// The headings of the table of all figures.
  private static final List<String> HEADINGS =
      List.of(
          "group",
          "data",
          "cache",
          "contender",
          "median GB/s",
          "least GB/s",
          "most GB/s",
          "runs",
          "share of ceiling",
          "note");

  private final Result result;
  private final Charts charts;
  private final StringBuilder html = new StringBuilder();

  private Page(Result result) {
    this.result = result;
    this.charts = new Charts(result);
  }

  public static String of(Result result) {
    // CDATA gives each script the same text in HTML and in XML.
    return """
    <!DOCTYPE html>
    <html lang="en" xmlns="http://www.w3.org/1999/xhtml">
    <head>
    <meta charset="utf-8"/>
    <meta name="viewport" content="width=device-width, initial-scale=1"/>
    <title>Gantry bench</title>
    <style>
    %s</style>
    </head>
    <body>
    %s<script>//<![CDATA[
    %s
    //]]></script>
    <script>//<![CDATA[
    %s
    //]]></script>
    </body>
    </html>
    """
        .formatted(resource("page.css"), new Page(result).body(), library(), resource("page.js"));
  }

  private static String library() {
    Properties library = new Properties();
    try {
      library.load(
          new StringReader(
              resource("/META-INF/maven/org.webjars.npm/" + LIBRARY + "/pom.properties")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String version = library.getProperty("version");
    return resource(
            "/META-INF/resources/webjars/" + LIBRARY + "/" + version + "/dist/chart.umd.min.js")
        .replaceAll("(?m)^//# sourceMappingURL=.*$", "");
  }

  private static String resource(String name) {
    try (InputStream in = Objects.requireNonNull(Page.class.getResourceAsStream(name), name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Escapes text for the inside of an element, or of an attribute in double quotes.
  private static String text(String text) {
    return text.replaceAll("\\p{Cntrl}", " ")
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\"", "&quot;");
  }

  /// Escapes JSON for the inside of a `script` element: no tag can end the element, and XML and
  /// HTML parsers read the same text.
  private static String json(String json) {
    return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e");
  }

  private static String chart(Chart chart) {
    return """
    <div class="chart" style="height:%dpx"><canvas role="img" aria-label="%s"></canvas>\
    <script type="application/json">%s</script></div>
    """
        .formatted(
            AXIS_PIXELS + ROW_PIXELS * chart.height(),
            text(chart.title()),
            json(ResultJson.GSON.toJson(chart)));
  }

  private String body() {
    header();
    title("Loads against the ceiling");
    key("ceiling", "ceiling", "ours", "Gantry", "peer", "others");
    cards(charts.loads());
    firstLoads();
    trace();
    for (Heat heat : Heat.values()) {
      grid(heat);
    }
    title("Ceilings");
    cards(Map.of("What this machine can do", charts.group(Group.CEILING)));
    figures();
    absences();
    html.append(
        "<script type=\"application/json\" id=\"bench\">\n%s\n</script>\n"
            .formatted(json(ResultJson.text(result))));
    return html.toString();
  }

  private void header() {
    Run run = result.run();
    Machine machine = result.machine();
    html.append("<h1>Gantry bench</h1>\n");
    muted(
        String.format(
            Locale.ROOT,
            "%s%s, %s; took %.0f s",
            run.version(),
            run.commit().isEmpty() ? "" : ", commit " + run.commit(),
            run.date().toString().replace('T', ' ').replace("Z", " UTC"),
            run.seconds()));
    html.append("<p><code>").append(text(run.command())).append("</code></p>\n");
    paragraph(
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
    String direct = machine.directAbsence();
    paragraph(
        machine.gpus().isEmpty()
            ? "No GPU."
            : "GPUs: "
                + String.join(", ", machine.gpus())
                + "; "
                + machine.driver()
                + (machine.cufile().isEmpty() ? "" : "; " + machine.cufile())
                + (direct.isEmpty() ? "" : "; no direct transport: " + direct));
    muted(
        "GB are 10⁹ bytes. Bars are medians, whiskers the least and the greatest repeat. Contenders"
            + " of a chart ran in turns, and so did their ceiling. Files hold random bytes. Hot:"
            + " all of the file is in the page cache; cold: the kernel says that none of it is."
            + (run.shortened() > 0
                ? " %d points have fewer than %d repeats, because %d s were used up."
                    .formatted(run.shortened(), run.repeats(), run.budgetSeconds())
                : ""));
  }

  private void paragraph(String text) {
    html.append("<p>").append(text(text)).append("</p>\n");
  }

  private void muted(String text) {
    html.append("<p class=\"muted\">").append(text(text)).append("</p>\n");
  }

  private void title(String text) {
    html.append("<h2>").append(text(text)).append("</h2>\n");
  }

  private void card(String title, Chart chart) {
    html.append("<div class=\"card\"><h3>%s</h3>\n%s</div>\n".formatted(text(title), chart(chart)));
  }

  private void cards(Map<String, Chart> byTitle) {
    html.append("<div class=\"charts\">\n");
    byTitle.forEach(this::card);
    html.append("</div>\n");
  }

  private void key(String... entries) {
    html.append("<p class=\"muted key\">");
    for (int i = 0; i < entries.length; i += 2) {
      html.append(
          "<i style=\"background:var(--%s)\"></i>%s".formatted(entries[i], text(entries[i + 1])));
    }
    html.append("</p>\n");
  }

  private void firstLoads() {
    List<Point> points = result.points(Group.FIRST_LOAD);
    if (points.isEmpty()) {
      return;
    }
    title("The first load of a process");
    for (Point point : points) {
      double seconds = point.bytes() / 1e9 / point.median();
      paragraph(
          String.format(
              Locale.ROOT, "%s: %s in %.2f s (median).", point.name(), point.what(), seconds));
    }
    cards(Map.of(points.getFirst().what() + ", page cache hot", charts.group(Group.FIRST_LOAD)));
  }

  private void trace() {
    Trace trace = result.trace();
    boolean staged = !trace.stages().isEmpty();
    title("One load, looked at closely");
    if (staged) {
      muted(trace.what() + ", page cache hot, under the flight recorder.");
    }
    if (trace.spans().isEmpty()) {
      muted("No timeline: " + trace.absence() + ".");
    } else {
      key("ours", "read", "copy", "copy to the GPU", "wait", "wait");
      muted(Charts.shares(trace));
      card("What each thread did", Charts.timeline(trace));
    }
    if (staged) {
      cards(Map.of("Where the time goes", Charts.stages(trace)));
    }
  }

  /// Adds a row for each size of a request, and a column for each number of threads. The best cell is bold.
  private void grid(Heat heat) {
    SortedMap<Long, SortedMap<Long, Point>> rows = new TreeMap<>();
    SortedSet<Long> columns = new TreeSet<>();
    for (Point point : result.points(Group.GRID)) {
      if (point.heat() == heat) {
        long threads = point.parameter(Point.THREADS);
        columns.add(threads);
        rows.computeIfAbsent(point.parameter(Point.REQUEST_BYTES), _ -> new TreeMap<>())
            .put(threads, point);
      }
    }
    if (rows.isEmpty()) {
      return;
    }
    title("Request size and threads, " + Charts.words(heat));
    muted("Gantry, GB/s; the stronger the colour, the faster.");
    List<Point> points = rows.values().stream().flatMap(row -> row.values().stream()).toList();
    double best = points.stream().mapToDouble(Point::median).max().orElseThrow();
    html.append("<div class=\"scroll card\"><h3>")
        .append(text(points.getFirst().what()))
        .append("</h3><table>\n<tr><th>request</th>");
    columns.forEach(count ->
        html.append(
            "<th class=\"number\">%s</th>".formatted(Threads.count(Math.toIntExact(count)))));
    html.append("</tr>\n");
    rows.forEach((request, row) -> {
      html.append("<tr>");
      cell("", request < 1 << 20 ? (request >> 10) + " KiB" : (request >> 20) + " MiB");
      for (long threads : columns) {
        Point point = row.get(threads);
        double median = point == null ? 0 : point.median();
        html.append(
            String.format(
                Locale.ROOT,
                "<td class=\"number%s\" style=\"background:color-mix(in srgb,var(--ours)"
                    + " %.0f%%,transparent)\">%s</td>",
                median == best ? " best" : "",
                5 + 55 * median / best,
                point == null ? "-" : Spread.rate(median)));
      }
      html.append("</tr>\n");
    });
    html.append("</table></div>\n");
  }

  private void figures() {
    title("All figures");
    html.append("<div class=\"scroll\"><table>\n<tr>");
    for (String heading : HEADINGS) {
      html.append("<th>").append(heading).append("</th>");
    }
    html.append("</tr>\n");
    for (int number = 0; number < result.points().size(); number++) {
      Point point = result.points().get(number);
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
          "number",
          ratio.isPresent() ? String.format(Locale.ROOT, "%.2f", ratio.getAsDouble()) : "");
      cell("muted", point.note());
      html.append("</tr>\n");
    }
    html.append("</table></div>\n");
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
        html.append("<li>%s</li>\n".formatted(text(absence.what() + ": " + absence.reason())));
      }
      html.append("</ul>\n");
    }
  }
}
