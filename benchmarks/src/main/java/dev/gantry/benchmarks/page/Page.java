// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Absence;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Machine;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.ResultJson;
import dev.gantry.benchmarks.result.Run;
import dev.gantry.benchmarks.result.Spread;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/// A bench as one HTML page: charts as inline SVG, all figures as tables, and the JSON itself. It needs
/// nothing from elsewhere and no JavaScript, and is well-formed XML besides.
public final class Page {
  public static final String FILE = "bench.html";
  public static final String DATA = "bench.json";

  private static final String STYLE =
      """
      body{margin:0 auto;max-width:1320px;padding:1.5rem;color:var(--ink);background:var(--page);
        font:15px/1.5 system-ui,Helvetica,Arial,sans-serif}
      :root{--page:#fff;--card:#f6f7f9}
      @media(prefers-color-scheme:dark){:root{--page:#14171a;--card:#1d2125}}
      h1{font-size:1.7rem;margin:0}
      h2{font-size:1.2rem;margin:2.2rem 0 .4rem}
      h3{font-size:1rem;margin:.2rem 0 .4rem}
      p{margin:.3rem 0;max-width:60rem}
      .muted,caption{color:var(--muted)}
      .charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,560px),1fr));gap:1rem}
      .card{background:var(--card);border-radius:8px;padding:.8rem 1rem;min-width:0}
      svg{display:block;width:100%;height:auto}
      .scroll{overflow-x:auto}
      table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
      th,td{padding:.22rem .7rem .22rem 0;border-bottom:1px solid var(--rule);text-align:left;
        vertical-align:top}
      .best{font-weight:bold}
      .number{text-align:right;white-space:nowrap}
      .key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 1em}
      code{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}
      """;

  private final Result result;
  private final StringBuilder html = new StringBuilder();

  private Page(Result result) {
    this.result = result;
  }

  /// @return the page
  public static String of(Result result) {
    return new Page(result).draw();
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
    html.append(
            "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n")
        .append("<meta charset=\"utf-8\"/>\n")
        .append("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n")
        .append("<title>Gantry bench</title>\n<style>\n")
        .append(Palette.styleSheet())
        .append(STYLE)
        .append("</style>\n</head>\n<body>\n");
    header();
    loads();
    firstLoads();
    trace();
    grids();
    cuFile();
    ceilings();
    table();
    absences();
    html.append("<script type=\"application/json\" id=\"bench\">\n")
        .append(Markup.script(ResultJson.text(result)))
        .append("</script>\n</body>\n</html>\n");
    return html.toString();
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
    html.append("<p><code>").append(Markup.text(run.command())).append("</code></p>\n");
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
                + (machine.cuFile().isEmpty() ? "" : "; " + machine.cuFile())
                + (machine.direct().isEmpty() ? "" : "; no direct transport: " + machine.direct()));
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
        .append(Markup.text(text))
        .append("</p>\n");
  }

  private void title(String text) {
    html.append("<h2>").append(Markup.text(text)).append("</h2>\n");
  }

  private void card(String title, String chart) {
    html.append("<div class=\"card\"><h3>")
        .append(Markup.text(title))
        .append("</h3>\n")
        .append(chart)
        .append("</div>\n");
  }

  private void key(String... entries) {
    html.append("<p class=\"muted key\">");
    for (int i = 0; i < entries.length; i += 2) {
      html.append("<i style=\"background:var(--")
          .append(entries[i])
          .append(")\"></i>")
          .append(Markup.text(entries[i + 1]));
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
      html.append("<div class=\"card\"><h3>What each thread did</h3>\n")
          .append(Charts.timeline(result.trace()))
          .append("</div>\n");
    }
    if (!result.trace().stages().isEmpty()) {
      html.append("<div class=\"charts\" style=\"margin-top:1rem\">\n");
      card("Where the time goes", Charts.stages(result.trace()));
      html.append("</div>\n");
    }
  }

  private void grids() {
    if (!result.points(Group.GRID).isEmpty()) {
      title("Request size and threads");
      paragraph("muted", "Gantry, GB/s; the stronger the colour, the faster.");
      html.append("<div class=\"charts\">\n");
      for (Heat heat : Charts.gridHeats(result)) {
        card(
            result.points(Group.GRID).getFirst().what() + ", " + heat(heat),
            Charts.grid(result, heat));
      }
      html.append("</div>\n");
    }
  }

  private void cuFile() {
    if (!result.points(Group.CUFILE).isEmpty()) {
      title(Group.CUFILE.title());
      paragraph(
          "muted",
          "Scattered reads into device memory, GB/s: the calls of several threads, batches, and"
              + " streams in turn. Depth is how many reads are under way at once. The fastest of a"
              + " row is bold.");
      for (Heat heat : Heat.values()) {
        cuFile(
            heat,
            result.points(Group.CUFILE).stream().filter(point -> point.heat() == heat).toList());
      }
    }
  }

  private void cuFile(Heat heat, List<Point> points) {
    if (points.isEmpty()) {
      return;
    }
    List<String> ways = points.stream().map(Page::way).distinct().toList();
    html.append("<div class=\"scroll card\"><h3>")
        .append(Markup.text(points.getFirst().what() + ", " + heat(heat)))
        .append("</h3><table>\n<tr><th>request</th><th>depth</th><th>offsets</th>");
    ways.forEach(
        way -> html.append("<th class=\"number\">").append(Markup.text(way)).append("</th>"));
    html.append("</tr>\n");
    points.stream()
        .map(Point::parameters)
        .distinct()
        .forEach(row -> {
          List<Point> same =
              points.stream().filter(point -> point.parameters().equals(row)).toList();
          Point first = same.getFirst();
          double best = same.stream().mapToDouble(Point::median).max().orElse(0);
          html.append("<tr>");
          cell("", HeatMap.size(first.parameter(Point.REQUEST_BYTES)));
          cell("", Long.toString(first.parameter(Point.DEPTH)));
          cell("", first.parameter(Point.ALIGNED) == 1 ? "aligned" : "unaligned");
          for (String way : ways) {
            Optional<Point> point = same.stream().filter(one -> way(one).equals(way)).findFirst();
            cell(
                point.isPresent() && point.get().median() == best ? "number best" : "number",
                point.map(one -> Spread.rate(one.median())).orElse("-"));
          }
          html.append("</tr>\n");
        });
    html.append("</table></div>\n");
  }

  /// The first word of a point's name.
  private static String way(Point point) {
    int comma = point.name().indexOf(',');
    return comma < 0 ? point.name() : point.name().substring(0, comma);
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
    OptionalDouble ratio = result.ratio(point);
    html.append("<tr data-point=\"").append(number).append("\">");
    cell("", point.group().title());
    cell("", point.what());
    cell("", point.heat() == Heat.NONE ? "" : point.heat().toString());
    cell("", point.name());
    cell("number", Spread.rate(spread.median()));
    cell("number", Spread.rate(spread.least()));
    cell("number", Spread.rate(spread.most()));
    cell("number", Integer.toString(point.repeats().size()));
    cell(
        "number", ratio.isPresent() ? String.format(Locale.ROOT, "%.2f", ratio.getAsDouble()) : "");
    cell("muted", point.note());
    html.append("</tr>\n");
  }

  private void cell(String style, String text) {
    html.append(style.isEmpty() ? "<td>" : "<td class=\"" + style + "\">")
        .append(Markup.text(text))
        .append("</td>");
  }

  private void absences() {
    if (!result.absences().isEmpty()) {
      title("Not measured");
      html.append("<ul>\n");
      for (Absence absence : result.absences()) {
        html.append("<li>")
            .append(Markup.text(absence.what() + ": " + absence.reason()))
            .append("</li>\n");
      }
      html.append("</ul>\n");
    }
  }
}
