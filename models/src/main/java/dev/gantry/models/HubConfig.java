// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonReader.Kind;
import dev.gantry.formats.spi.FileBytes;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The members of a folder's `config.json`. Nothing in it is believed: each getter checks what it
/// returns, and an error names the file, the key, the value and what would be right. It records
/// which keys were asked for, so that [#requireAllRead] finds those that nothing here understands.
///
/// A member that is `null` counts as absent, as it does for the library that writes these files.
final class HubConfig {
  /// The most bytes of a file: the names of a hundred thousand classes fit.
  private static final long MAX_BYTES = 16 << 20;

  /// @param content a String, Boolean, [Written], List of Value or [HubConfig]
  private record Value(long offset, Object content) {}

  /// A number as it is written in the file.
  private record Written(String number) {
    @Override
    public String toString() {
      return number;
    }
  }

  private final Location file;
  private final long offset;

  /// The keys that lead here, each with a dot behind it.
  private final String path;

  private final Map<String, Value> members = new LinkedHashMap<>();
  private final Set<String> nulls = new HashSet<>();
  private final Set<String> read = new HashSet<>();

  private HubConfig(Location file, long offset, String path) {
    this.file = file;
    this.offset = offset;
    this.path = path;
  }

  /// A configuration without members: each getter returns its default.
  static HubConfig empty() {
    return new HubConfig(Location.of(Path.of("config.json")), 0, "");
  }

  /// @param json such as `config.json`
  /// @throws MalformedFileException if it is no JSON object, or too large
  /// @throws dev.gantry.core.TransferException if it is not there or cannot be read
  static HubConfig read(Path json) {
    return parsed(json, reader -> object(reader, ""));
  }

  /// @param json a file with an array of objects, such as `modules.json`
  /// @throws MalformedFileException if it is no such array, or too large
  /// @throws dev.gantry.core.TransferException if it is not there or cannot be read
  static List<HubConfig> readList(Path json) {
    return parsed(
        json,
        reader -> {
          if (reader.json().peek() != Kind.ARRAY) {
            throw reader.json().unwanted("not-an-array", "the file is JSON, but no array");
          }
          List<HubConfig> objects = new ArrayList<>();
          for (boolean more = reader.json().beginArray();
              more;
              more = reader.json().nextElement()) {
            reader.json().countEntry();
            objects.add(object(reader, ""));
          }
          return objects;
        });
  }

  private record Source(Location file, JsonReader json) {}

  private static <T> T parsed(Path file, Function<Source, T> parser) {
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), file)) {
      if (bytes.length() > MAX_BYTES) {
        throw new MalformedFileException(
            bytes.file(), 0, "config-too-large", bytes.length() + " bytes, more than " + MAX_BYTES);
      }
      JsonReader reader = new JsonReader(bytes, 0, bytes.length());
      T parsed = parser.apply(new Source(bytes.file(), reader));
      reader.end();
      return parsed;
    }
  }

  private static HubConfig object(Source source, String path) {
    if (source.json().peek() != Kind.OBJECT) {
      throw source.json().unwanted("not-an-object", "the configuration is JSON, but no object");
    }
    return object(source.file(), source.json(), path);
  }

  /// Makes a configuration of what another file says.
  ///
  /// @param file that file, for errors
  /// @param members by their keys: text, numbers, flags, lists and maps of these
  static HubConfig of(Location file, Map<String, ?> members) {
    HubConfig config = new HubConfig(file, 0, "");
    members.forEach((key, content) -> config.members.put(key, given(file, content)));
    return config;
  }

  private static Value given(Location file, Object content) {
    Object made =
        switch (content) {
          case Number number -> new Written(number.toString());
          case List<?> list -> list.stream().map(element -> given(file, element)).toList();
          case Map<?, ?> map -> {
            Map<String, Object> named = new LinkedHashMap<>();
            map.forEach((key, value) -> named.put(key.toString(), value));
            yield of(file, named);
          }
          default -> content;
        };
    return new Value(0, made);
  }

  private static HubConfig object(Location file, JsonReader json, String path) {
    HubConfig config = new HubConfig(file, json.valueOffset(), path);
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      String name = json.memberName();
      long offset = json.valueOffset();
      json.countEntry();
      Object content = content(file, json, path + name + ".");
      if (content == null) {
        config.nulls.add(name);
      }
      if (content != null && config.members.put(name, new Value(offset, content)) != null) {
        throw json.malformedAt(offset, "duplicate-key", "a second '" + path + name + "'");
      }
    }
    return config;
  }

  private static @Nullable Object content(Location file, JsonReader json, String path) {
    return switch (json.peek()) {
      case OBJECT -> object(file, json, path);
      case ARRAY -> {
        List<Value> elements = new ArrayList<>();
        for (boolean more = json.beginArray(); more; more = json.nextElement()) {
          json.countEntry();
          Object element = content(file, json, path);
          elements.add(new Value(json.valueOffset(), element == null ? "null" : element));
        }
        yield elements;
      }
      case STRING -> json.string();
      case NUMBER -> new Written(json.number());
      case BOOLEAN -> json.flag();
      case NULL -> {
        json.skip();
        yield null;
      }
    };
  }

  boolean has(String key) {
    return find(key) != null;
  }

  /// Whether the file says `null`: for a key whose absence means something else.
  boolean isNull(String key) {
    return nulls.contains(key);
  }

  /// An id from 0 to `most`, or `otherwise` if the key is absent.
  int id(String key, int otherwise, int most) {
    Value value = find(key);
    return value == null ? otherwise : whole(key, value, 0, most);
  }

  /// Numbers above 0, exactly `length`.
  List<Float> factors(String key, int length) {
    Value value = required(key);
    if (!(value.content() instanceof List<?> elements) || elements.size() != length) {
      throw refuse(key, "it must be an array of " + length + " numbers");
    }
    return elements.stream().map(element -> (float) positive(key, (Value) element)).toList();
  }

  private @Nullable Value find(String key) {
    read.add(key);
    return members.get(key);
  }

  /// Refuses a key that was never asked for: it may stand for arithmetic that no block here has. A
  /// key with an empty object or array says nothing.
  ///
  /// @param harmless keys that change no answer, with the keys that lead to them (`a.b`)
  void requireAllRead(Set<String> harmless) {
    members.forEach((key, value) -> {
      if (read.contains(key)) {
        if (value.content() instanceof HubConfig object) {
          object.requireAllRead(harmless);
        }
      } else if (!harmless.contains(path + key) && !isEmpty(value)) {
        throw malformed(
            "unknown-key", key, value, "this key is not known here and may change the answers");
      }
    });
  }

  private static boolean isEmpty(Value value) {
    return switch (value.content()) {
      case HubConfig object -> object.members.isEmpty();
      case List<?> elements -> elements.isEmpty();
      default -> false;
    };
  }

  /// A whole number from 1 to `most`.
  int count(String key, int most) {
    return whole(key, required(key), 1, most);
  }

  /// A whole number from 1 to `most`, or `otherwise` if the key is absent.
  int count(String key, int otherwise, int most) {
    Value value = find(key);
    return value == null ? otherwise : whole(key, value, 1, most);
  }

  /// An object's strings, numbers and flags, each as text; empty if it is absent.
  Map<String, String> texts(String key) {
    HubConfig object = object(key).orElseGet(HubConfig::empty);
    Map<String, String> texts = new LinkedHashMap<>();
    object.members.forEach((name, value) -> {
      object.read.add(name);
      if (value.content() instanceof HubConfig || value.content() instanceof List<?>) {
        throw object.invalid(name, value, "it must be a string or a number");
      }
      texts.put(name, value.content().toString());
    });
    return texts;
  }

  /// A whole number; the key must be there.
  int whole(String key, int least, int most) {
    return whole(key, required(key), least, most);
  }

  /// One whole number or an array of them; none if the key is absent.
  List<Integer> wholes(String key, int least, int most) {
    Value value = find(key);
    if (value == null) {
      return List.of();
    }
    List<?> all = value.content() instanceof List<?> elements ? elements : List.of(value);
    return all.stream().map(each -> whole(key, (Value) each, least, most)).toList();
  }

  /// A value as text; empty if the key is absent.
  String text(String key) {
    Value value = find(key);
    return value == null ? "" : value.content().toString();
  }

  /// Requires that a value, if it is there, is this one, as no block here does otherwise.
  void must(String key, String only) {
    if (has(key) && !text(key).equals(only)) {
      throw refuse(key, "it is not supported; it must be " + only);
    }
  }

  /// Requires that one of these objects is there.
  void need(String... keys) {
    if (Arrays.stream(keys).noneMatch(key -> object(key).isPresent())) {
      throw missing(keys[0]);
    }
  }

  /// Passes over a key, which may be that of an object's member.
  void ignore(String key) {
    int dot = key.indexOf('.');
    if (dot < 0) {
      read.add(key);
    } else {
      object(key.substring(0, dot)).ifPresent(within -> within.ignore(key.substring(dot + 1)));
    }
  }

  private int whole(String key, Value value, int least, int most) {
    if (value.content() instanceof Written(String number)) {
      try {
        long whole = Long.parseLong(number);
        if (whole >= least && whole <= most) {
          return (int) whole;
        }
      } catch (NumberFormatException _) {
        // Refused below, as a number out of bounds is.
      }
    }
    throw invalid(key, value, "it must be a whole number from " + least + " to " + most);
  }

  /// A number above 0, or `otherwise` if the key is absent.
  double positive(String key, double otherwise) {
    Value value = find(key);
    return value == null ? otherwise : positive(key, value);
  }

  /// A number from 0 on, or `otherwise` if the key is absent.
  double positiveOrZero(String key, double otherwise) {
    return find(key) instanceof Value(_, Written(String number)) && Double.parseDouble(number) == 0
        ? 0
        : positive(key, otherwise);
  }

  /// A number above 0; the key must be there.
  double positive(String key) {
    return positive(key, required(key));
  }

  private double positive(String key, Value value) {
    if (value.content() instanceof Written(String number)) {
      double parsed = Double.parseDouble(number);
      if (parsed > 0 && parsed < Float.MAX_VALUE) {
        return parsed;
      }
    }
    throw invalid(key, value, "it must be a number above 0");
  }

  boolean flag(String key, boolean otherwise) {
    return typed(key, Boolean.class, "it must be true or false").orElse(otherwise);
  }

  /// A value of one kind; empty if it is absent.
  private <T> Optional<T> typed(String key, Class<T> type, String rule) {
    Value value = find(key);
    if (value == null) {
      return Optional.empty();
    }
    if (type.isInstance(value.content())) {
      return Optional.of(type.cast(value.content()));
    }
    throw invalid(key, value, rule);
  }

  /// The value that a word stands for; the key must be there.
  <T> T choice(String key, Map<String, T> known) {
    required(key);
    return choice(key, "", known);
  }

  /// The value that a word stands for; `otherwise` is the word if the key is absent.
  <T> T choice(String key, String otherwise, Map<String, T> known) {
    Value value = Objects.requireNonNullElse(find(key), new Value(offset, otherwise));
    T chosen = known.get(value.content().toString());
    if (chosen == null) {
      throw invalid(key, value, "known are " + String.join(", ", new TreeSet<>(known.keySet())));
    }
    return chosen;
  }

  /// A string.
  String word(String key, String otherwise) {
    return typed(key, String.class, "it must be a string").orElse(otherwise);
  }

  /// A special token: its text, or an object whose `content` is that; empty if it is absent.
  Optional<String> token(String key) {
    return find(key) instanceof Value(_, HubConfig object)
        ? Optional.of(object.word("content", ""))
        : typed(key, String.class, "it must be a string");
  }

  /// The strings of an array; none if it is absent.
  List<String> words(String key) {
    Value value = find(key);
    if (value == null) {
      return List.of();
    }
    if (value.content() instanceof List<?> elements
        && elements.stream().allMatch(element -> ((Value) element).content() instanceof String)) {
      return elements.stream().map(element -> (String) ((Value) element).content()).toList();
    }
    throw invalid(key, value, "it must be an array of strings");
  }

  /// The values that a word, or each word of an array, stands for; none if the key is absent.
  <T> List<T> choices(String key, Map<String, T> known) {
    Value value = find(key);
    if (value == null || value.content() instanceof String) {
      return value == null ? List.of() : List.of(choice(key, known));
    }
    List<String> words = words(key);
    if (!known.keySet().containsAll(words)) {
      throw invalid(key, value, "known are " + String.join(", ", new TreeSet<>(known.keySet())));
    }
    return words.stream().map(known::get).toList();
  }

  /// The same configuration, in which a key has this value.
  HubConfig with(String key, Object value) {
    HubConfig changed = with(empty());
    changed.members.put(key, given(file, value));
    return changed;
  }

  /// The same configuration as one of its own, in which the members of another replace those of the same keys.
  HubConfig with(HubConfig others) {
    HubConfig changed = new HubConfig(file, offset, "");
    changed.members.putAll(members);
    changed.members.putAll(others.members);
    return changed;
  }

  /// The object under a key, if it has members.
  Optional<HubConfig> object(String key) {
    return typed(key, HubConfig.class, "it must be an object")
        .filter(object -> !object.members.isEmpty());
  }

  /// Makes the error for a value that is right by itself and contradicts others.
  MalformedFileException refuse(String key, String reason) {
    Value value = find(key);
    return value == null ? missing(key) : invalid(key, value, reason);
  }

  private Value required(String key) {
    Value value = find(key);
    if (value == null) {
      throw missing(key);
    }
    return value;
  }

  private MalformedFileException missing(String key) {
    return new MalformedFileException(
        file, offset, "missing-key", "the configuration has no '" + path + key + "'");
  }

  private MalformedFileException invalid(String key, Value value, String reason) {
    return malformed("invalid-value", key, value, reason);
  }

  private MalformedFileException malformed(String kind, String key, Value value, String reason) {
    String shown =
        switch (value.content()) {
          case String word -> "\"" + shortened(word) + "\"";
          case HubConfig _ -> "an object";
          case List<?> _ -> "an array";
          case Object other -> shortened(other.toString());
        };
    return new MalformedFileException(
        file, value.offset(), kind, "'" + path + key + "' is " + shown + "; " + reason);
  }

  private static String shortened(String text) {
    return text.length() <= 60 ? text : text.substring(0, 60) + "…";
  }
}
