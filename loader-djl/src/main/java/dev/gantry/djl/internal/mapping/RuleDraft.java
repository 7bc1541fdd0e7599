// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import dev.gantry.core.TensorShape;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;

/// Drafts the rules for a [BlockMap] as Java code to paste.
///
/// @param lines one line for each rule, or a comment on what is left to do
public record RuleDraft(List<String> lines) {
  private static final int MAX_CANDIDATES = 4;

  public static RuleDraft of(BlockMap map) {
    List<String> lines = new ArrayList<>();
    boolean turned = map.matches().stream().anyMatch(BlockMap.Match::transposed);
    for (BlockMap.Match match : map.matches()) {
      if (turned && !match.transposed() && isSquare(match)) {
        lines.add(comment("square, so its shape does not tell whether it is transposed, too"));
      }
      lines.addAll(rules(match));
    }
    map.ambiguous()
        .forEach((parameter, tensors) ->
            lines.add(
                comment(
                    "choose a tensor for "
                        + described(parameter)
                        + ": "
                        + tensors.stream()
                            .limit(MAX_CANDIDATES)
                            .map(Family::pattern)
                            .collect(Collectors.joining(", "))
                        + (tensors.size() > MAX_CANDIDATES ? ", …" : ""))));
    map.missing()
        .forEach(parameter ->
            lines.add(comment("no tensor for " + described(parameter) + tie(map, parameter))));
    lines.addAll(ignored(map));
    return new RuleDraft(List.copyOf(lines));
  }

  private static boolean isSquare(BlockMap.Match match) {
    return match.parameters().members().stream()
        .allMatch(member ->
            member
                .named()
                .shape()
                .filter(shape -> shape.rank() == 2 && shape.dimension(0) == shape.dimension(1))
                .isPresent());
  }

  private static List<String> rules(BlockMap.Match match) {
    Family ours = match.parameters();
    Family theirs = match.tensors();
    OptionalInt shift = ours.shiftTo(theirs);
    if (!ours.isSingle()
        && shift.isPresent()
        && theirs.hasPlainNumbers()
        && isPattern(ours)
        && isPattern(theirs)) {
      // A parameter's number that equals the tensor's number needs no shift, so it becomes `{i}`
      // if there is one.
      int main = Math.max(0, ours.shifts().indexOf(shift.getAsInt()));
      return List.of(
          rule(
              ours.pattern(main),
              theirs.template(shift.getAsInt() - ours.shifts().get(main)),
              match.transposed()));
    }
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < ours.members().size(); i++) {
      String parameter = ours.members().get(i).named().name();
      String tensor = theirs.members().get(i).named().name();
      lines.add(
          hasBrace(parameter) || hasBrace(tensor)
              ? comment(parameter + " is " + tensor + "; a rule can have no brace")
              : rule(parameter, tensor, match.transposed()));
    }
    return lines;
  }

  private static boolean isPattern(Family family) {
    return family.texts().stream().noneMatch(RuleDraft::hasBrace);
  }

  private static boolean hasBrace(String name) {
    return name.contains("{") || name.contains("}");
  }

  private static String described(Family family) {
    Named first = family.members().getFirst().named();
    return family.pattern()
        + " "
        + first.shape().map(TensorShape::toString).orElse("of unknown shape");
  }

  /// Suggests to tie this parameter to the only matched parameter of the same shape, because an
  /// output layer often shares the embedding's weights.
  private static String tie(BlockMap map, Family parameter) {
    Optional<TensorShape> shape = parameter.members().getFirst().named().shape();
    List<String> alike =
        map.matches().stream()
            .flatMap(match -> match.parameters().members().stream())
            .map(Family.Member::named)
            .filter(other -> other.shape().filter(found -> found.rank() == 2).equals(shape))
            .map(Named::name)
            .toList();
    return shape.isPresent() && alike.size() == 1 && parameter.isSingle()
        ? "; if it shares one: .tie("
            + quoted(parameter.pattern())
            + ", "
            + quoted(alike.getFirst())
            + ")"
        : "";
  }

  /// Returns the unused tensors that are no candidates. One pattern stands for the tensors of all
  /// layers.
  private static List<String> ignored(BlockMap map) {
    List<String> lines = new ArrayList<>();
    for (Family family : map.withoutCandidate()) {
      if (isPattern(family)) {
        lines.add(".ignore(" + quoted(family.pattern()) + ")");
      } else {
        lines.add(comment("unused: " + family.pattern() + "; a rule can have no brace"));
      }
    }
    return lines;
  }

  private static String rule(String parameter, String tensor, boolean transposed) {
    return ".rule("
        + quoted(parameter)
        + ", "
        + quoted(tensor)
        + (transposed ? ", TensorTransform.transpose())" : ")");
  }

  private static String comment(String text) {
    return "// " + text.replaceAll("\\p{Cntrl}", "?");
  }

  /// Returns a Java statement that makes the rules.
  public List<String> java() {
    List<String> java = new ArrayList<>();
    java.add("ParameterNames names =");
    java.add("    ParameterNames.builder()");
    lines.forEach(line -> java.add("        " + line));
    java.add("        .build();");
    return java;
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    text.chars()
        .forEach(c -> {
          if (c == '"' || c == '\\') {
            quoted.append('\\').append((char) c);
          } else if (Character.isISOControl(c)) {
            quoted.append(String.format("\\%03o", c));
          } else {
            quoted.append((char) c);
          }
        });
    return quoted.append("\"").toString();
  }
}
