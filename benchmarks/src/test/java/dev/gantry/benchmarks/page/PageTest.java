// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.ResultJson;
import dev.gantry.benchmarks.result.Results;
import dev.gantry.benchmarks.result.Spread;
import java.io.IOException;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/// The page of a result that no machine has measured.
public class PageTest {
  private final Result result = Results.full();
  private final String page = Page.of(result);

  /// @throws SAXException if the page is not well-formed
  public static Document parse(String xml)
      throws IOException, SAXException, ParserConfigurationException {
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(xml)));
  }

  /// All elements of a name.
  public static List<Element> elements(Document document, String name) {
    NodeList found = document.getElementsByTagName(name);
    List<Element> elements = new ArrayList<>();
    for (int i = 0; i < found.getLength(); i++) {
      elements.add((Element) found.item(i));
    }
    return elements;
  }

  /// The addresses that a browser would fetch.
  public static List<String> references(Document document) {
    List<String> references = new ArrayList<>();
    for (Element element : elements(document, "*")) {
      for (String name : new String[] {"src", "href", "xlink:href", "data", "srcset", "poster"}) {
        if (element.hasAttribute(name)) {
          references.add(element.getAttribute(name));
        }
      }
    }
    return references;
  }

  @Test
  void isWellFormedAndNeedsNothingFromElsewhere() throws Exception {
    assertThat(references(parse(page))).isEmpty();
    assertThat(page).doesNotContain("@import", "url(", "<link");
  }

  @Test
  void holdsTheJsonItself() throws Exception {
    Element script =
        elements(parse(page), "script").stream()
            .filter(one -> one.getAttribute("id").equals("bench"))
            .findFirst()
            .orElseThrow();
    assertThat(script.getAttribute("type")).isEqualTo("application/json");
    assertThat(ResultJson.read(script.getTextContent())).isEqualTo(result);
    // No text of a file's name ends the script in a browser, either.
    assertThat(page.split("</script>", -1)).hasSameSizeAs(page.split("<script[ >]", -1));
  }

  @Test
  void tableHasTheFiguresOfAllPoints() throws Exception {
    List<Element> rows =
        elements(parse(page), "tr").stream().filter(row -> row.hasAttribute("data-point")).toList();
    assertThat(rows).hasSameSizeAs(result.points());
    for (int i = 0; i < rows.size(); i++) {
      Point point = result.points().get(i);
      NodeList cells = rows.get(i).getElementsByTagName("td");
      assertThat(cells.item(3).getTextContent()).isEqualTo(point.name());
      assertThat(cells.item(4).getTextContent()).isEqualTo(Spread.rate(point.median()));
      assertThat(cells.item(5).getTextContent()).isEqualTo(Spread.rate(point.spread().least()));
      assertThat(cells.item(6).getTextContent()).isEqualTo(Spread.rate(point.spread().most()));
    }
  }

  /// The data of each chart that the script draws.
  private List<JsonObject> charts() throws Exception {
    return elements(parse(page), "div").stream()
        .filter(one -> one.getAttribute("class").equals("chart"))
        .map(one -> JsonParser.parseString(one.getTextContent()).getAsJsonObject())
        .toList();
  }

  private static List<String> strings(List<JsonObject> charts, String of, String field) {
    return charts.stream()
        .filter(chart -> chart.has(of))
        .flatMap(chart -> chart.getAsJsonArray(of).asList().stream())
        .map(one -> one.getAsJsonObject().get(field).getAsString())
        .toList();
  }

  @Test
  void chartsShowFigures() throws Exception {
    // Loads with their share of the ceiling, the ceiling itself, names as they are, and the stages.
    assertThat(strings(charts(), "bars", "figure"))
        .contains("50.00  (0.91)", "7.00  (0.13)", "3.95  (0.99)", "55.00", "1.25 ms");
    assertThat(strings(charts(), "bars", "label"))
        .contains("<b>peer</b> & \"co\"", "read, until the last byte is there");
    assertThat(strings(charts(), "bars", "color")).contains("ceiling", "ours", "peer");
    assertThat(charts().getFirst().get("ceiling").getAsDouble()).isEqualTo(55);
    JsonObject bar = charts().getFirst().getAsJsonArray("bars").get(1).getAsJsonObject();
    assertThat(bar.get("least").getAsDouble()).isEqualTo(49);
    assertThat(bar.get("median").getAsDouble()).isEqualTo(50);
    assertThat(bar.get("most").getAsDouble()).isEqualTo(51);
  }

  @Test
  void aThreadsCopiesHaveARowOfTheirOwn() throws Exception {
    JsonObject timeline =
        charts().stream().filter(chart -> chart.has("boxes")).findFirst().orElseThrow();
    assertThat(timeline.getAsJsonArray("rows"))
        .extracting(JsonElement::getAsString)
        .containsExactly("reader-0", "reader-0, copies", "reader-1");
    assertThat(strings(List.of(timeline), "boxes", "color"))
        .containsExactly("ours", "copy", "wait");
  }

  @Test
  void theGridIsATableWhoseFastestCellIsBold() throws Exception {
    List<String> rows = elements(parse(page), "tr").stream().map(Element::getTextContent).toList();
    assertThat(rows).contains("request1 thread4 threads", "256 KiB2.000.512", "1 MiB5.0015.00");
    assertThat(page)
        .contains("<td class=\"number best\" style=\"background:color-mix(in srgb,var(--ours) 60%,")
        .contains("<td class=\"number\" style=\"background:color-mix(in srgb,var(--ours) 23%,");
  }

  @Test
  void theLibraryAndItsScriptAreInThePage() {
    assertThat(page).contains("Chart.js v", "new Chart(").doesNotContain("sourceMappingURL");
  }

  /// Two threads for 1.1 ms each: one of them read for 0.5, the other waited all the time.
  @Test
  void sharesOfTheThreadsTimeAreSaid() {
    assertThat(page)
        .contains("2 threads, 1.10 ms from the first read to the end: read 23 %, wait 50 %");
  }

  @Test
  void whatWasNotMeasuredIsSaid() {
    assertThat(page)
        .contains("transport gds: no &lt;nvidia-fs&gt;", "1 points have fewer than 3 repeats");
  }
}
