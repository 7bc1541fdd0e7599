// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.SequencedMap;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/// Names that differ only in the number of a layer, such as the names of one parameter in every
/// layer; or a single name. The number may occur several times in a name, each time shifted, as in
/// DJL's `05transformer_0` and `06transformer_1`.
///
/// @param texts the texts before, between and after the numbers; the whole name for a single name
/// @param shifts how much larger each number is than the first number
/// @param members the names, in the order of their numbers
public record Family(List<String> texts, List<Integer> shifts, List<Member> members) {
  private static final Pattern NUMBER = Pattern.compile("\\d{1,9}");
  private static final String CAPTURES = "ijklmn";

  /// One name of the family.
  ///
  /// @param number the first number in the name; -1 for a single name
  public record Member(int number, Named named) {}

  public Family {
    texts = List.copyOf(texts);
    shifts = List.copyOf(shifts);
    members = List.copyOf(members);
  }

  static Family single(Named named) {
    return new Family(List.of(named.name()), List.of(), List.of(new Member(-1, named)));
  }

  /// A name that is split into its numbers and the texts around them.
  private record Numbered(Named named, List<String> numbers) {
    int number(int place) {
      return Integer.parseInt(numbers.get(place));
    }
  }

  /// Returns the families of all names, in the order of each family's first name. If several
  /// numbers in the names differ independently, the first of them is the layer's number.
  public static List<Family> of(Collection<Named> names) {
    Map<String, Integer> order = new HashMap<>();
    SequencedMap<List<String>, List<Numbered>> alike = new LinkedHashMap<>();
    for (Named named : names) {
      order.put(named.name(), order.size());
      List<String> numbers =
          NUMBER.matcher(named.name()).results().map(MatchResult::group).toList();
      alike
          .computeIfAbsent(List.of(NUMBER.split(named.name(), -1)), _ -> new ArrayList<>())
          .add(new Numbered(named, numbers));
    }
    List<Family> families = new ArrayList<>();
    alike.forEach((texts, group) -> add(texts, group, families));
    families.sort(
        Comparator.comparingInt(family ->
            family.members.stream()
                .mapToInt(member -> order.getOrDefault(member.named().name(), 0))
                .min()
                .orElseThrow()));
    return families;
  }

  /// @param texts the texts before, between and after the numbers, which are equal in all names of
  ///     the group
  private static void add(List<String> texts, List<Numbered> group, List<Family> families) {
    List<Integer> counting = new ArrayList<>();
    for (int i = 0; i < texts.size() - 1; i++) {
      int place = i;
      SequencedMap<String, List<Numbered>> parts = new LinkedHashMap<>();
      group.forEach(name ->
          parts.computeIfAbsent(name.numbers().get(place), _ -> new ArrayList<>()).add(name));
      if (parts.size() == 1) {
        continue;
      }
      // A number that differs from the first number by the same amount in all names is the layer's
      // number, too.
      boolean counts =
          counting.isEmpty()
              || (counting.size() < CAPTURES.length()
                  && group.stream()
                          .mapToInt(name -> shift(name, counting, place))
                          .distinct()
                          .count()
                      == 1);
      if (!counts) {
        parts.values().forEach(part -> add(texts, part, families));
        return;
      }
      counting.add(place);
    }
    long layers =
        counting.isEmpty()
            ? 1
            : group.stream().mapToInt(name -> name.number(counting.getFirst())).distinct().count();
    if (counting.isEmpty() || layers < group.size()) {
      group.forEach(name -> families.add(single(name.named())));
    } else {
      families.add(family(texts, group, counting));
    }
  }

  private static int shift(Numbered name, List<Integer> counting, int place) {
    return name.number(place) - name.number(counting.getFirst());
  }

  /// @param counting which numbers are the layer's number; the other numbers are equal in all
  ///     names
  private static Family family(List<String> texts, List<Numbered> group, List<Integer> counting) {
    Numbered first = group.getFirst();
    List<String> around = new ArrayList<>();
    StringBuilder text = new StringBuilder(texts.getFirst());
    for (int i = 0; i < texts.size() - 1; i++) {
      if (counting.contains(i)) {
        around.add(text.toString());
        text.setLength(0);
      } else {
        text.append(first.numbers().get(i));
      }
      text.append(texts.get(i + 1));
    }
    around.add(text.toString());
    return new Family(
        around,
        counting.stream().map(place -> shift(first, counting, place)).toList(),
        group.stream()
            .map(name -> new Member(name.number(counting.getFirst()), name.named()))
            .sorted(Comparator.comparingInt(Member::number))
            .toList());
  }

  boolean isSingle() {
    return members.size() == 1;
  }

  List<Family> singles() {
    return members.stream().map(member -> single(member.named())).toList();
  }

  /// Returns the name with `{i}`, `{j}` and so on in the place of its numbers.
  public String pattern() {
    return pattern(0);
  }

  /// @param main the index of the number that becomes `{i}`
  String pattern(int main) {
    StringBuilder pattern = new StringBuilder(texts.getFirst());
    int next = 1;
    for (int i = 0; i < shifts.size(); i++) {
      pattern.append('{').append(i == main ? 'i' : CAPTURES.charAt(next++)).append('}');
      pattern.append(texts.get(i + 1));
    }
    return pattern.toString();
  }

  /// Returns the template of the name, for the tensor's side of a rule.
  ///
  /// @param shift how much larger the first number is than `{i}`
  String template(int shift) {
    StringBuilder template = new StringBuilder(texts.getFirst());
    for (int i = 0; i < shifts.size(); i++) {
      int all = shift + shifts.get(i);
      template.append(all == 0 ? "{i}" : all > 0 ? "{i+" + all + "}" : "{i" + all + "}");
      template.append(texts.get(i + 1));
    }
    return template.toString();
  }

  /// Whether a template can produce these names, which is so if their numbers have no leading
  /// zeros.
  boolean hasPlainNumbers() {
    return members.stream()
        .allMatch(member -> {
          StringBuilder name = new StringBuilder(texts.getFirst());
          for (int i = 0; i < shifts.size(); i++) {
            name.append(member.number() + shifts.get(i)).append(texts.get(i + 1));
          }
          return member.named().name().contentEquals(name);
        });
  }

  /// Returns how much larger the first number of the other family's member is than that of this
  /// family's member; empty if the difference varies from member to member.
  OptionalInt shiftTo(Family other) {
    int shift = other.members.getFirst().number() - members.getFirst().number();
    boolean constant = members.size() == other.members.size();
    for (int i = 0; constant && i < members.size(); i++) {
      constant = other.members.get(i).number() - members.get(i).number() == shift;
    }
    return constant ? OptionalInt.of(shift) : OptionalInt.empty();
  }
}
