// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.models.internal.blocks.Activations;
import dev.gantry.models.internal.blocks.Description.Stem;
import java.lang.reflect.RecordComponent;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The facts that a family's section of `families.txt` reads from a `config.json`, as text by
/// their names. Not thread-safe.
final class Facts {
  static final int MAX_TOKENS = 16 << 20;
  static final int MAX_POSITIONS = 64 << 20;
  static final int WIDEST = 1 << 20;
  private static final int MAX_STAGES = 64;

  /// The upper bound of whole numbers from 1 on, by the word for their kind.
  private static final Map<String, Integer> BOUNDS =
      Map.ofEntries(
          Map.entry("width", WIDEST),
          Map.entry("layers", 1024),
          Map.entry("heads", 1 << 16),
          Map.entry("experts", 1 << 12),
          Map.entry("tokens", MAX_TOKENS),
          Map.entry("positions", MAX_POSITIONS),
          Map.entry("pixels", 1 << 16));

  private static final Map<String, List<String>> SECTIONS = ResourceLines.sections("families.txt");
  private static final Pattern FACT = Pattern.compile("<([\\w.]+)>");

  /// The families by their `model_type`.
  static final Map<String, String> FAMILIES =
      SECTIONS.entrySet().stream()
          .filter(each -> each.getValue().stream().anyMatch(line -> line.startsWith("class ")))
          .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getKey));

  private final HubConfig config;
  private final Map<String, String> facts = new HashMap<>();
  private final Map<String, String> keys = new HashMap<>();
  private final Map<String, Stem> stems = new HashMap<>();

  /// @param family the model's `model_type`
  Facts(HubConfig config, String family) {
    this.config = config;
    facts.put("names", family);
    read("any");
    read(family);
  }

  static Stream<String> lines(String section) {
    return ResourceLines.lines(SECTIONS, section).stream();
  }

  private void read(String section) {
    for (String line : lines(section).toList()) {
      String[] plain = line.split(" = ?", 2);
      if (plain.length == 2) {
        facts.put(plain[0], plain[1]);
      } else {
        read(filled(line).split(" ", -1));
      }
    }
  }

  private void read(String... word) {
    switch (word[0]) {
      case "class" -> {
        facts.put("base", word[1]);
        facts.put("usual", word[2]);
        facts.put("classes", word[3]);
      }
      case "ignore" -> config.ignore(word[1]);
      case "must" -> config.must(word[1], word[2]);
      case "need" -> config.need(word[1].split("\\|", -1));
      case "stem" -> stems.put(word[1], stem(word));
      case "unlike" -> requireUnlike(word);
      default -> facts.put(word[0], said(word));
    }
  }

  /// Replaces the names of facts in a text by their values.
  String filled(String text) {
    return FACT.matcher(text).replaceAll(name -> text(name.group(1)));
  }

  /// Sets a fact that is computed from other facts.
  void set(String fact, Object value) {
    facts.put(fact, value.toString());
  }

  private static Stem stem(String... word) {
    return new Stem(
        word[1],
        Integer.parseInt(word[2]),
        Boolean.parseBoolean(word[3]),
        Activations.of(word[4]),
        Boolean.parseBoolean(word[5]));
  }

  /// Refuses the special tokens of another family, whose files could be mistaken for this
  /// family's.
  private void requireUnlike(String... word) {
    boolean like =
        Stream.of(word)
            .skip(2)
            .map(each -> each.split("=", 2))
            .allMatch(each -> config.text(each[0]).matches(each[1]));
    if (like) {
      throw config.refuse(
          "model_type",
          "the special tokens are those of %1$s: it must be '%1$s'".formatted(word[1]));
    }
  }

  /// Returns a fact's value in the configuration, or its default if the configuration lacks it.
  private String said(String... word) {
    List<String> present = Stream.of(word[2].split("\\|", -1)).filter(config::has).toList();
    String key = present.isEmpty() ? word[2].split("\\|", -1)[0] : present.getFirst();
    keys.put(word[0], key);
    String[] otherwise = word.length > 3 ? word[3].split("\\|", -1) : new String[] {""};
    String usual = otherwise[config.isNull(key) ? otherwise.length - 1 : 0];
    boolean isWord = word[1].equals("choice") || word[1].equals("activation");
    if (present.isEmpty() && word.length > 3 && !isWord) {
      return usual;
    }
    String value = isWord ? config.choice(key, usual, known(word)) : value(key, word);
    present.stream().skip(1).forEach(other -> config.must(other, value));
    return value;
  }

  private static Map<String, String> known(String... word) {
    Map<String, String> known = new TreeMap<>();
    if (word[1].equals("activation")) {
      Activations.KNOWN.keySet().forEach(each -> known.put(each, each));
    }
    Stream.of(word)
        .skip(4)
        .map(each -> each.split("=", 2))
        .forEach(each -> known.put(each[0], each[1]));
    return known;
  }

  private String value(String key, String... word) {
    String kind = word[1];
    return switch (kind) {
      case "flag" -> "" + config.flag(key, false);
      case "number" -> "" + config.positive(key);
      case "some" -> "" + (!config.text(key).equals("0") && config.positive(key) > 0);
      case "id" -> "" + config.whole(key, 0, MAX_TOKENS);
      case "distance" -> "" + config.whole(key, -1, MAX_POSITIONS);
      case "ids" -> joined(config.wholes(key, 0, MAX_TOKENS));
      case "choices" -> joined(config.choices(key, known(word)));
      case "list-width", "list-layers" -> {
        List<Integer> list = config.wholes(key, 1, bound(kind.substring(5)));
        if (list.isEmpty() || list.size() > MAX_STAGES) {
          throw config.refuse(key, "it must be an array of 1 to " + MAX_STAGES + " numbers");
        }
        yield joined(list);
      }
      default -> "" + config.whole(key, 1, bound(kind));
    };
  }

  private static int bound(String kind) {
    return Objects.requireNonNull(BOUNDS.get(kind), kind);
  }

  private static String joined(List<?> values) {
    return values.stream().map(Object::toString).collect(Collectors.joining(","));
  }

  String text(String fact) {
    // The labels are read only if the class has labels.
    return fact.equals("labels")
        ? "" + Architecture.labels(config).size()
        : filled(Objects.requireNonNull(facts.get(fact), fact));
  }

  int whole(String fact) {
    return Integer.parseInt(text(fact));
  }

  double number(String fact) {
    return Double.parseDouble(text(fact));
  }

  boolean is(String fact) {
    return Boolean.parseBoolean(text(fact));
  }

  List<String> words(String fact) {
    return text(fact).isEmpty() ? List.of() : List.of(text(fact).split(",", -1));
  }

  List<Integer> list(String fact) {
    return words(fact).stream().map(Integer::parseInt).toList();
  }

  /// Makes a record from the facts that have the names of its components.
  ///
  /// @param path the names that lead to the record, each followed by a dot
  /// @param given the components that are not facts
  <R extends Record> R make(Class<R> type, String path, Map<String, ?> given) {
    RecordComponent[] parts = type.getRecordComponents();
    Object[] values =
        Stream.of(parts)
            .map(part ->
                given.containsKey(part.getName())
                    ? given.get(part.getName())
                    : value(path + part.getName(), part.getType()))
            .toArray();
    try {
      return type.cast(type.getDeclaredConstructors()[0].newInstance(values));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(type.getName(), e);
    }
  }

  private @Nullable Object value(String fact, Class<?> type) {
    if (type.isRecord()) {
      boolean none = "none".equals(facts.get(fact));
      return none ? null : make(type.asSubclass(Record.class), fact + ".", Map.of());
    }
    if (type.isEnum()) {
      return Stream.of(type.getEnumConstants())
          .filter(each -> each.toString().equals(text(fact)))
          .findFirst()
          .orElseThrow();
    }
    return switch (type.getSimpleName()) {
      case "boolean" -> is(fact);
      case "int" -> whole(fact);
      case "double" -> number(fact);
      case "List" -> list(fact);
      case "UnaryOperator" -> Activations.of(text(fact));
      default -> throw new IllegalStateException(fact);
    };
  }

  Stem stem(String name) {
    return Objects.requireNonNull(stems.get(name), name);
  }

  /// Returns the key of `config.json` from which a fact was read.
  String key(String fact) {
    return Objects.requireNonNull(keys.get(fact), fact);
  }

  HubConfig config() {
    return config;
  }
}
