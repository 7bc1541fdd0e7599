// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import static org.assertj.core.api.Assertions.assertThat;

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

  /// What a browser would fetch.
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
    Element script = elements(parse(page), "script").getFirst();
    assertThat(script.getAttribute("type")).isEqualTo("application/json");
    assertThat(ResultJson.read(script.getTextContent())).isEqualTo(result);
    // No text of a file's name ends the script in a browser, either.
    assertThat(page.split("</script>", -1)).hasSize(2);
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

  @Test
  void chartsShowFiguresAsText() throws Exception {
    List<String> texts =
        elements(parse(page), "text").stream().map(Element::getTextContent).toList();
    assertThat(texts)
        // Loads with their share of the ceiling, the ceiling itself, and names as they are.
        .contains("50.00  (0.91)", "7.00  (0.13)", "3.95  (0.99)", "55.00", "<b>peer</b> & \"co\"")
        // The grid's axes and cells.
        .contains("256 KiB", "1 MiB", "15.00", "0.512", "threads", "request")
        // The timeline's rows, and the stages.
        .contains(
            "reader-0",
            "reader-0, copies",
            "reader-1",
            "read, until the last byte is there",
            "1.25 ms");
  }

  @Test
  void waysOfCuFileStandSideBySide() throws Exception {
    Element row =
        elements(parse(page), "tr").stream()
            .filter(one -> one.getTextContent().startsWith("64 KiB"))
            .findFirst()
            .orElseThrow();
    assertThat(row.getTextContent()).isEqualTo("64 KiB8aligned1.502.75");
    assertThat(((Element) row.getLastChild()).getAttribute("class")).contains("best");
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

  @Test
  void pictureOfItsOwnHasBothCharts() throws Exception {
    Document picture = parse(StandaloneChart.of(result));
    assertThat(picture.getDocumentElement().getTagName()).isEqualTo("svg");
    assertThat(references(picture)).isEmpty();
    assertThat(elements(picture, "text"))
        .extracting(Element::getTextContent)
        .contains("8 MiB in 1 tensor, page cache hot", "8 MiB in 1 tensor, cold, from the disk")
        .contains("50.00  (0.91)", "3.95  (0.99)");
    assertThat(elements(picture, "style").getFirst().getTextContent())
        .contains("prefers-color-scheme:dark");
  }
}
