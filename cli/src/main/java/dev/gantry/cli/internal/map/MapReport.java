// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.map;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Json.JsonObject;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.mapping.BlockMap;
import dev.gantry.djl.internal.mapping.Family;
import dev.gantry.djl.internal.mapping.Named;
import dev.gantry.djl.internal.mapping.RuleDraft;
import java.io.PrintWriter;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SequencedSet;

/// Reports which tensor of some weights fills each parameter of a block, and prints rules for the
/// names, which users paste into their code.
public record MapReport(BlockMap map) implements Report {
  private static final int MAX_CANDIDATES = 3;

  @Override
  public void print(PrintWriter out) {
    out.printf(
        "%d parameters have a tensor, %d have several candidates, %d have none; %d tensors are"
            + " unmatched%n",
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
              .limit(MAX_CANDIDATES - 1)
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
  public Object json() {
    JsonObject parameters = Json.object();
    for (BlockMap.Match match : map.matches()) {
      for (int i = 0; i < match.parameters().members().size(); i++) {
        add(match.parameters().members().get(i).named(), parameters)
            .with("tensor", match.tensors().members().get(i).named().name())
            .with("transposed", match.transposed())
            .with("by", match.reason().name().toLowerCase(Locale.ROOT));
      }
    }
    map.ambiguous()
        .forEach((parameter, tensors) -> {
          for (int i = 0; i < parameter.members().size(); i++) {
            int member = i;
            add(parameter.members().get(i).named(), parameters)
                .with(
                    "candidates",
                    tensors.stream()
                        .map(family -> family.members().get(member).named().name())
                        .toList());
          }
        });
    addAll(map.missing(), parameters);
    JsonObject unused = Json.object();
    addAll(map.unused(), unused);
    return Json.object()
        .with("parameters", parameters)
        .with("unused", unused)
        .with("rules", RuleDraft.of(map).java());
  }

  private static void addAll(List<Family> families, JsonObject all) {
    families.forEach(family -> family.members().forEach(member -> add(member.named(), all)));
  }

  private static JsonObject add(Named named, JsonObject all) {
    JsonObject described = Json.object().with("shape", named.shape());
    all.with(named.name(), described);
    return described;
  }
}
