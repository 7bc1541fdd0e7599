// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.map;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.mapping.BlockMap;
import dev.gantry.djl.internal.mapping.Family;
import dev.gantry.djl.internal.mapping.Named;
import dev.gantry.djl.internal.mapping.RuleDraft;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;

/// A block's parameters beside the tensors of some weights, and rules to paste.
public record MapReport(BlockMap map) implements Report {
  private static final int MOST_CANDIDATES = 3;

  @Override
  public void print(PrintWriter out) {
    out.printf(
        "%d parameters have a tensor, %d have several candidates, %d have none; %d tensors are"
            + " left%n",
        count(map.matches().stream().map(BlockMap.Match::parameters).toList()),
        count(map.ambiguous().keySet()),
        count(map.missing()),
        count(map.unused()));
    Table table = new Table("parameter", "shape", "tensor", "shape", "why");
    for (BlockMap.Match match : map.matches()) {
      row(match.parameters(), match.tensors(), why(match), table);
    }
    map.ambiguous()
        .forEach((parameter, tensors) -> {
          row(parameter, tensors.getFirst(), "ambiguous: " + tensors.size(), table);
          tensors.stream()
              .skip(1)
              .limit(MOST_CANDIDATES - 1)
              .forEach(tensor -> table.row("", "", tensor.pattern(), shapes(tensor), ""));
        });
    map.missing().forEach(each -> table.row(each.pattern(), shapes(each), "", "", "no tensor"));
    map.withoutCandidate()
        .forEach(each -> table.row("", "", each.pattern(), shapes(each), "no parameter"));
    table.print(out);
    out.println();
    RuleDraft.of(map).java().forEach(line -> out.println(Table.line(line)));
  }

  private static void row(Family parameter, Family tensor, String why, Table table) {
    table.row(parameter.pattern(), shapes(parameter), tensor.pattern(), shapes(tensor), why);
  }

  private static int count(Collection<Family> families) {
    return families.stream().mapToInt(family -> family.members().size()).sum();
  }

  private static String why(BlockMap.Match match) {
    int layers = match.parameters().members().size();
    return "by "
        + match.reason().name().toLowerCase(Locale.ROOT)
        + (match.transposed() ? ", transposed" : "")
        + (layers > 1 ? ", " + layers + " layers" : "");
  }

  private static String shapes(Family family) {
    SequencedSet<String> shapes = new LinkedHashSet<>();
    family.members().forEach(member -> shapes.add(shape(member.named().shape())));
    return shapes.getFirst() + (shapes.size() > 1 ? " …" : "");
  }

  private static String shape(Optional<TensorShape> shape) {
    return shape.map(TensorShape::toString).orElse("unknown");
  }

  @Override
  public void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeObjectFieldStart("parameters");
    for (BlockMap.Match match : map.matches()) {
      for (int i = 0; i < match.parameters().members().size(); i++) {
        begin(match.parameters().members().get(i).named(), json);
        json.writeStringField("tensor", match.tensors().members().get(i).named().name());
        json.writeBooleanField("transposed", match.transposed());
        json.writeStringField("by", match.reason().name().toLowerCase(Locale.ROOT));
        json.writeEndObject();
      }
    }
    for (Map.Entry<Family, List<Family>> entry : map.ambiguous().entrySet()) {
      List<Family.Member> members = entry.getKey().members();
      for (int i = 0; i < members.size(); i++) {
        int member = i;
        begin(members.get(i).named(), json);
        List<String> names =
            entry.getValue().stream()
                .map(family -> family.members().get(member).named().name())
                .toList();
        writeTexts("candidates", names, json);
        json.writeEndObject();
      }
    }
    writeAll(map.missing(), json);
    json.writeEndObject();
    json.writeObjectFieldStart("unused");
    writeAll(map.unused(), json);
    json.writeEndObject();
    writeTexts("rules", RuleDraft.of(map).java(), json);
    json.writeEndObject();
  }

  private static void writeAll(List<Family> families, JsonGenerator json) throws IOException {
    for (Family family : families) {
      for (Family.Member member : family.members()) {
        begin(member.named(), json);
        json.writeEndObject();
      }
    }
  }

  private static void begin(Named named, JsonGenerator json) throws IOException {
    json.writeObjectFieldStart(named.name());
    if (named.shape().isPresent()) {
      Json.writeShape(named.shape().get(), json);
    }
  }

  private static void writeTexts(String field, List<String> texts, JsonGenerator json)
      throws IOException {
    json.writeArrayFieldStart(field);
    for (String text : texts) {
      json.writeString(text);
    }
    json.writeEndArray();
  }
}
