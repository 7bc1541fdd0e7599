// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.SequencedMap;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Names that differ in the number of a layer only, as those of one parameter of every layer; or a
/// single name. The number may occur several times, each time shifted, as DJL has it in
/// `05transformer_0` and `06transformer_1`.
///
/// @param texts before, between and after the numbers; of a single name, all of it
/// @param shifts for each number, what it is more than the first one
/// @param members in the order of their numbers
public record Family(List<String> texts, List<Integer> shifts, List<Member> members) {
  private static final Pattern NUMBER = Pattern.compile("\\d{1,9}");
  private static final String CAPTURES = "ijklmn";

  /// In a name; further ones count as text.
  private static final int MOST_NUMBERS = 8;

  /// One of the names.
  ///
  /// @param number the first one; -1 for a single name
  public record Member(int number, Named named) {}

  public Family {
    texts = List.copyOf(texts);
    shifts = List.copyOf(shifts);
    members = List.copyOf(members);
  }

  static Family single(Named named) {
    return new Family(List.of(named.name()), List.of(), List.of(new Member(-1, named)));
  }

  private record Key(List<String> texts, List<Integer> shifts) {}

  /// Families of all names, in the order of their first ones. Of several numbers that differ
  /// independently, the first one counts the layers.
  public static List<Family> of(Collection<Named> names) {
    Map<String, Set<Integer>> values = new HashMap<>();
    for (Named named : names) {
      for (MatchResult run : runs(named.name())) {
        add(values, context(named.name(), 0, run), value(run));
      }
    }
    Map<String, Set<Integer>> shifts = new HashMap<>();
    // What a number is, the names tell together, and those behind it depend on it.
    for (int index = 1; index < MOST_NUMBERS; index++) {
      for (Named named : names) {
        MatchResult first = first(named.name(), values);
        if (first != null) {
          addShift(named.name(), first, index, shifts);
        }
      }
    }
    SequencedMap<Key, List<Member>> groups = new LinkedHashMap<>();
    for (Named named : names) {
      MatchResult first = first(named.name(), values);
      Key key =
          first == null
              ? new Key(List.of(named.name()), List.of())
              : key(named.name(), first, after(named.name(), first), shifts);
      groups
          .computeIfAbsent(key, _ -> new ArrayList<>())
          .add(new Member(first == null ? -1 : value(first), named));
    }
    List<Family> families = new ArrayList<>();
    groups.forEach((key, members) -> {
      long numbers = members.stream().map(Member::number).distinct().count();
      if (members.size() == 1 || numbers < members.size()) {
        members.forEach(member -> families.add(single(member.named())));
      } else {
        members.sort(Comparator.comparingInt(Member::number));
        families.add(new Family(key.texts(), key.shifts(), members));
      }
    });
    return families;
  }

  private static void addShift(
      String name, MatchResult first, int index, Map<String, Set<Integer>> shifts) {
    List<MatchResult> runs = after(name, first);
    if (index <= runs.size()) {
      Key before = key(name, first, runs.subList(0, index - 1), shifts);
      MatchResult run = runs.get(index - 1);
      add(shifts, context(before, run, name), value(run) - value(first));
    }
  }

  /// The text before a number, with `#` for those that count the layers.
  private static String context(Key before, MatchResult run, String name) {
    String all = String.join("#", before.texts());
    int behind = name.length() - run.start();
    return all.substring(0, all.length() - behind) + context(name, run.start(), run);
  }

  /// @param runs numbers after the first one; those that always differ from it by the same count the
  ///     same layers
  private static Key key(
      String name, MatchResult first, List<MatchResult> runs, Map<String, Set<Integer>> shifts) {
    List<String> texts = new ArrayList<>(List.of(name.substring(0, first.start())));
    List<Integer> found = new ArrayList<>(List.of(0));
    int end = first.end();
    for (MatchResult run : runs) {
      Key before = new Key(with(texts, name.substring(end)), found);
      Set<Integer> known = shifts.getOrDefault(context(before, run, name), Set.of());
      if (known.size() == 1 && found.size() < CAPTURES.length()) {
        texts.add(name.substring(end, run.start()));
        found.add(value(run) - value(first));
        end = run.end();
      }
    }
    return new Key(with(texts, name.substring(end)), found);
  }

  private static List<String> with(List<String> texts, String last) {
    List<String> all = new ArrayList<>(texts);
    all.add(last);
    return all;
  }

  private static void add(Map<String, Set<Integer>> sets, String key, int value) {
    sets.computeIfAbsent(key, _ -> new HashSet<>()).add(value);
  }

  private static List<MatchResult> runs(String name) {
    return NUMBER.matcher(name).results().limit(MOST_NUMBERS).toList();
  }

  private static int value(MatchResult run) {
    return Integer.parseInt(run.group());
  }

  private static @Nullable MatchResult first(String name, Map<String, Set<Integer>> values) {
    return runs(name).stream()
        .filter(run -> values.getOrDefault(context(name, 0, run), Set.of()).size() > 1)
        .findFirst()
        .orElse(null);
  }

  private static List<MatchResult> after(String name, MatchResult first) {
    return runs(name).stream().filter(run -> run.start() > first.start()).toList();
  }

  /// Numbers with the same text before them, and the same word after them, count the same things.
  private static String context(String name, int from, MatchResult run) {
    int end = run.end();
    while (end < name.length() && name.charAt(end) != '.' && name.charAt(end) != '_') {
      end++;
    }
    return name.substring(from, run.start()) + "#" + name.substring(run.end(), end);
  }

  boolean isSingle() {
    return members.size() == 1;
  }

  List<Family> singles() {
    return members.stream().map(member -> single(member.named())).toList();
  }

  /// The name, with `{i}`, `{j}` and so on for the numbers.
  public String pattern() {
    return pattern(0);
  }

  /// @param main which of the numbers is `{i}`
  String pattern(int main) {
    StringBuilder pattern = new StringBuilder(texts.getFirst());
    int next = 1;
    for (int i = 0; i < shifts.size(); i++) {
      pattern.append('{').append(i == main ? 'i' : CAPTURES.charAt(next++)).append('}');
      pattern.append(texts.get(i + 1));
    }
    return pattern.toString();
  }

  /// The name for the tensor's side of a rule.
  ///
  /// @param shift what the first number is more than `{i}`
  String template(int shift) {
    StringBuilder template = new StringBuilder(texts.getFirst());
    for (int i = 0; i < shifts.size(); i++) {
      int all = shift + shifts.get(i);
      template.append(all == 0 ? "{i}" : all > 0 ? "{i+" + all + "}" : "{i" + all + "}");
      template.append(texts.get(i + 1));
    }
    return template.toString();
  }

  /// Whether a template can give these names: their numbers have no leading zeros.
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

  /// What is to be added to the first numbers of this for those of another family; empty if that
  /// differs from member to member.
  OptionalInt shiftTo(Family other) {
    int shift = other.members.getFirst().number() - members.getFirst().number();
    boolean constant = members.size() == other.members.size();
    for (int i = 0; constant && i < members.size(); i++) {
      constant = other.members.get(i).number() - members.get(i).number() == shift;
    }
    return constant ? OptionalInt.of(shift) : OptionalInt.empty();
  }
}
