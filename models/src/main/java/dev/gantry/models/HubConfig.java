// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.FileBytes;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// The members of a folder's `config.json`. The file's contents are not trusted: each getter
/// checks the value that it returns, and an error names the file, the key, the value and the rule.
/// The class records which keys were read, so that [#requireAllRead] finds keys that nothing here
/// understands.
///
/// A member that is `null` counts as absent, as in the library that writes these files.
final class HubConfig {
  private final Location file;
  private final JsonTree tree;

  /// The offset at which the object begins, for errors about absent members.
  private final long offset;

  /// The keys that lead to this object, each followed by a dot.
  private final String path;

  private final Map<String, HubConfig> objects = new HashMap<>();
  private final Set<String> read = new HashSet<>();

  private HubConfig(Location file, JsonTree tree, long offset, String path) {
    this.file = file;
    this.tree = tree;
    this.offset = offset;
    this.path = path;
  }

  /// A configuration without members: each getter returns its default.
  static HubConfig empty() {
    return of(Location.of(Path.of("config.json")), JsonTree.EMPTY);
  }

  /// @param file the file that holds the tree, for errors
  static HubConfig of(Location file, JsonTree tree) {
    return new HubConfig(file, tree, 0, "");
  }

  /// @param json a file such as `config.json`
  /// @throws MalformedFileException if the file is not a JSON object, or is too large
  /// @throws dev.gantry.core.TransferException if the file does not exist or cannot be read
  static HubConfig read(Path json) {
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), json)) {
      return of(bytes.file(), JsonTree.read(bytes));
    }
  }

  /// @param json a file with an array of objects, such as `modules.json`
  /// @throws MalformedFileException if the file is not an array of objects, or is too large
  /// @throws dev.gantry.core.TransferException if the file does not exist or cannot be read
  static List<HubConfig> readList(Path json) {
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), json)) {
      return JsonTree.readList(bytes).stream().map(tree -> of(bytes.file(), tree)).toList();
    }
  }

  /// Reads a file that may be absent. If it is, each getter returns its default.
  static HubConfig optional(Path json) {
    return Files.exists(json) ? read(json) : empty();
  }

  private @Nullable Object find(String key) {
    read.add(key);
    return tree.members().get(key);
  }

  boolean has(String key) {
    return find(key) != null;
  }

  /// Whether the key is present with the value `null`, for keys whose absence means something
  /// else.
  boolean isNull(String key) {
    return tree.offsets().containsKey(key) && !has(key);
  }

  private Object required(String key) {
    Object value = find(key);
    if (value == null) {
      throw missing(key);
    }
    return value;
  }

  /// Returns a value of one type; empty if the key is absent.
  private <T> Optional<T> typed(String key, Class<T> type, String rule) {
    Object value = find(key);
    if (value != null && !type.isInstance(value)) {
      throw refuse(key, rule);
    }
    return Optional.ofNullable(value).map(type::cast);
  }

  /// Refuses keys that were never read, because such a key may stand for arithmetic that no block
  /// here has. Keys with an empty object or array are accepted.
  ///
  /// @param harmless keys that change no answer, each with the keys that lead to it (`a.b`)
  void requireAllRead(Set<String> harmless) {
    tree.members()
        .forEach((key, value) -> {
          boolean empty = value instanceof JsonTree object && object.members().isEmpty();
          if (read.contains(key)) {
            if (value instanceof JsonTree) {
              object(key).ifPresent(within -> within.requireAllRead(harmless));
            }
          } else if (!harmless.contains(path + key) && !empty && !value.equals(List.of())) {
            throw malformed(
                "unknown-key", key, value, "this key is not known here and may change the answers");
          }
        });
  }

  /// Returns a whole number, or `otherwise` if the key is absent.
  int whole(String key, int otherwise, int least, int most) {
    return has(key) ? whole(key, least, most) : otherwise;
  }

  /// Returns a whole number; the key must be present.
  int whole(String key, int least, int most) {
    return whole(key, required(key), least, most);
  }

  /// Returns a whole number as a list of one, or an array of them; empty if the key is absent.
  List<Integer> wholes(String key, int least, int most) {
    Object value = Objects.requireNonNullElse(find(key), List.of());
    List<?> all = value instanceof List<?> elements ? elements : List.of(value);
    return all.stream().map(each -> whole(key, each, least, most)).toList();
  }

  private int whole(String key, Object value, int least, int most) {
    if (value instanceof Double number
        && number == Math.rint(number)
        && number >= least
        && number <= most) {
      return number.intValue();
    }
    throw invalid(key, value, "it must be a whole number from " + least + " to " + most);
  }

  /// Returns a number above 0; the key must be present.
  double positive(String key) {
    return positive(key, required(key));
  }

  /// Returns a number above 0, or `otherwise` if the key is absent.
  double positive(String key, double otherwise) {
    return has(key) ? positive(key) : otherwise;
  }

  /// Returns an array of exactly `length` numbers above 0.
  List<Float> factors(String key, int length) {
    if (!(required(key) instanceof List<?> elements) || elements.size() != length) {
      throw refuse(key, "it must be an array of " + length + " numbers");
    }
    return elements.stream().map(element -> (float) positive(key, element)).toList();
  }

  private double positive(String key, Object value) {
    if (value instanceof Double number && number > 0 && number < Float.MAX_VALUE) {
      return number;
    }
    throw invalid(key, value, "it must be a number above 0");
  }

  boolean flag(String key, boolean otherwise) {
    return typed(key, Boolean.class, "it must be true or false").orElse(otherwise);
  }

  String word(String key, String otherwise) {
    return typed(key, String.class, "it must be a string").orElse(otherwise);
  }

  /// Returns the text of a special token, which is a string or an object whose `content` is the
  /// string; empty if the key is absent.
  Optional<String> token(String key) {
    return find(key) instanceof JsonTree
        ? object(key).map(token -> token.word("content", ""))
        : typed(key, String.class, "it must be a string");
  }

  /// Returns the strings of an array; empty if the key is absent.
  List<String> words(String key) {
    List<?> elements = typed(key, List.class, "it must be an array of strings").orElseGet(List::of);
    if (!elements.stream().allMatch(String.class::isInstance)) {
      throw refuse(key, "it must be an array of strings");
    }
    return elements.stream().map(String.class::cast).toList();
  }

  /// Returns the value that a word stands for; the key must be present.
  <T> T choice(String key, Map<String, T> known) {
    return choices(key, List.of(JsonTree.shown(required(key))), known).getFirst();
  }

  /// Returns the value that a word stands for; `otherwise` is the word if the key is absent.
  <T> T choice(String key, String otherwise, Map<String, T> known) {
    return has(key) ? choice(key, known) : Objects.requireNonNull(known.get(otherwise), otherwise);
  }

  /// Returns the values that a word, or the words of an array, stand for; empty if the key is
  /// absent.
  <T> List<T> choices(String key, Map<String, T> known) {
    return choices(key, find(key) instanceof String word ? List.of(word) : words(key), known);
  }

  private <T> List<T> choices(String key, List<String> words, Map<String, T> known) {
    if (!known.keySet().containsAll(words)) {
      throw refuse(key, "it must be one of " + String.join(", ", new TreeSet<>(known.keySet())));
    }
    return words.stream().map(known::get).toList();
  }

  /// Returns an object's strings, numbers and flags as text, by their keys; empty if the key is
  /// absent.
  Map<String, String> texts(String key) {
    HubConfig object = object(key).orElseGet(HubConfig::empty);
    Map<String, String> texts = new LinkedHashMap<>();
    for (String name : object.tree.members().keySet()) {
      Object value = object.required(name);
      if (value instanceof JsonTree || value instanceof List<?>) {
        throw object.refuse(name, "it must be a string or a number");
      }
      texts.put(name, object.text(name));
    }
    return texts;
  }

  /// Returns a value as text; empty if the key is absent.
  String text(String key) {
    Object value = find(key);
    return value == null ? "" : JsonTree.shown(value);
  }

  /// Requires that the value equals `only` if the key is present, because no block here supports
  /// another value.
  void must(String key, String only) {
    if (has(key) && !text(key).equals(only)) {
      throw refuse(key, "it is not supported; it must be " + only);
    }
  }

  /// Requires that the configuration has at least one of these objects.
  void need(String... keys) {
    if (Arrays.stream(keys).noneMatch(key -> object(key).isPresent())) {
      throw missing(keys[0]);
    }
  }

  /// Marks a key as read. The key may be that of an object's member, such as `a.b`.
  void ignore(String key) {
    int dot = key.indexOf('.');
    if (dot < 0) {
      read.add(key);
    } else {
      object(key.substring(0, dot)).ifPresent(within -> within.ignore(key.substring(dot + 1)));
    }
  }

  /// Returns the object of a key; empty if it is absent or has no members.
  Optional<HubConfig> object(String key) {
    return typed(key, JsonTree.class, "it must be an object")
        .filter(object -> !object.members().isEmpty())
        .map(object ->
            objects.computeIfAbsent(
                key, _ -> new HubConfig(file, object, offset(key), path + key + ".")));
  }

  /// Returns a copy of this configuration in which the key has this value.
  HubConfig with(String key, Object value) {
    return with(of(file, new JsonTree(Map.of(key, value))));
  }

  /// Returns a copy of this configuration in which the members of `others` replace those with the
  /// same keys.
  HubConfig with(HubConfig others) {
    Map<String, Object> members = new LinkedHashMap<>(tree.members());
    members.putAll(others.tree.members());
    return new HubConfig(file, new JsonTree(members, tree.offsets()), offset, "");
  }

  /// Returns the error for a value that is valid by itself but contradicts other values.
  MalformedFileException refuse(String key, String reason) {
    Object value = find(key);
    return value == null ? missing(key) : invalid(key, value, reason);
  }

  private MalformedFileException missing(String key) {
    return new MalformedFileException(
        file, offset, "missing-key", "the configuration has no '" + path + key + "'");
  }

  private MalformedFileException invalid(String key, Object value, String reason) {
    return malformed("invalid-value", key, value, reason);
  }

  private long offset(String key) {
    return tree.offsets().getOrDefault(key, offset);
  }

  private MalformedFileException malformed(String kind, String key, Object value, String reason) {
    String shown =
        switch (value) {
          case String word -> "\"" + shortened(word) + "\"";
          case JsonTree _ -> "an object";
          case List<?> _ -> "an array";
          default -> JsonTree.shown(value);
        };
    return new MalformedFileException(
        file, offset(key), kind, "'" + path + key + "' is " + shown + "; " + reason);
  }

  private static String shortened(String text) {
    return text.length() <= 60 ? text : text.substring(0, 60) + "…";
  }
}
