// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A small JSON document in memory, such as a model's configuration. A value is a JsonTree (for
/// an object), a List, a String, a Boolean or a Double; members that are null are absent.
/// Immutable.
///
/// @param members the members of the object, by name
/// @param offsets the file offset of each member, those that are null included; empty if the document was
///     read from no file
public record JsonTree(Map<String, Object> members, Map<String, Long> offsets) {
  private static final long MAX_BYTES = 16 << 20;

  /// The most members and elements. The smallest objects take some 300 bytes each.
  private static final int MAX_ENTRIES = 500_000;

  public static final JsonTree EMPTY = new JsonTree(Map.of());

  public JsonTree {
    members = Collections.unmodifiableMap(new LinkedHashMap<>(members));
    offsets = Map.copyOf(offsets);
  }

  public JsonTree(Map<String, Object> members) {
    this(members, Map.of());
  }

  /// Reads a whole file.
  ///
  /// @throws MalformedFileException if the file is no JSON object, or too large to be kept
  public static JsonTree read(FileBytes file) {
    return read(file, 0, file.length());
  }

  /// Reads a section of a file.
  public static JsonTree read(FileBytes file, long from, long to) {
    JsonReader json = reader(file, from, to);
    JsonTree tree = object(json);
    json.end();
    return tree;
  }

  /// Reads a whole file that holds an array of objects.
  ///
  /// @throws MalformedFileException if the file holds no such array, or is too large to be kept
  public static List<JsonTree> readList(FileBytes file) {
    JsonReader json = reader(file, 0, file.length());
    json.require(JsonReader.Kind.ARRAY, "no-array", "the JSON");
    List<JsonTree> trees = new ArrayList<>();
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      json.countEntry(MAX_ENTRIES);
      trees.add(object(json));
    }
    json.end();
    return trees;
  }

  private static JsonReader reader(FileBytes file, long from, long to) {
    if (to - from > MAX_BYTES) {
      throw new MalformedFileException(
          file.file(), from, "too-large", "more than " + MAX_BYTES + " bytes of JSON");
    }
    return new JsonReader(file, from, to);
  }

  private static JsonTree object(JsonReader json) {
    json.require(JsonReader.Kind.OBJECT, "no-object", "the JSON");
    Map<String, Object> members = new LinkedHashMap<>();
    Map<String, Long> offsets = new HashMap<>();
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      json.countEntry(MAX_ENTRIES);
      String name = json.memberName();
      long offset = json.valueOffset();
      offsets.put(name, offset);
      Optional<Object> value = value(json);
      if (value.isPresent() && members.put(name, value.get()) != null) {
        throw json.malformedAt(offset, "duplicate-key", "'" + name + "' occurs twice");
      }
    }
    return new JsonTree(members, offsets);
  }

  private static Optional<Object> value(JsonReader json) {
    return switch (json.peek()) {
      case OBJECT -> Optional.of(object(json));
      case ARRAY -> {
        List<Object> elements = new ArrayList<>();
        for (boolean more = json.beginArray(); more; more = json.nextElement()) {
          json.countEntry(MAX_ENTRIES);
          value(json).ifPresent(elements::add);
        }
        yield Optional.of(List.copyOf(elements));
      }
      case STRING -> Optional.of(json.string());
      case NUMBER -> Optional.of(Double.valueOf(json.number()));
      case BOOLEAN -> Optional.of(json.flag());
      default -> {
        json.skip();
        yield Optional.empty();
      }
    };
  }

  /// Returns a value as text; a whole number has no decimal point.
  public static String shown(Object value) {
    return value instanceof Double number && number == number.longValue()
        ? Long.toString(number.longValue())
        : value.toString();
  }

  /// Returns a member if its value has this type.
  public <T> Optional<T> get(String name, Class<T> type) {
    return Optional.ofNullable(members.get(name)).filter(type::isInstance).map(type::cast);
  }

  public Optional<String> text(String name) {
    return get(name, String.class);
  }

  /// Returns a member that is a whole number; empty if it is absent or not a whole number.
  public Optional<Long> count(String name) {
    return get(name, Double.class)
        .filter(number -> number == Math.rint(number))
        .map(Double::longValue);
  }

  public boolean says(String name) {
    return get(name, Boolean.class).orElse(false);
  }

  /// Returns a member that is an object; an empty object if there is none.
  public JsonTree object(String name) {
    return get(name, JsonTree.class).orElse(EMPTY);
  }

  /// Returns the whole numbers of a member that is an array; an empty list if there is no such
  /// member.
  public List<Long> counts(String name) {
    List<Long> counts = new ArrayList<>();
    for (Object element : get(name, List.class).orElse(List.of())) {
      if (element instanceof Double number && number == Math.rint(number)) {
        counts.add(number.longValue());
      }
    }
    return counts;
  }
}
