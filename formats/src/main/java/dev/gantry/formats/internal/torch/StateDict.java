// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.internal.torch.PickleValue.Constant;
import dev.gantry.formats.internal.torch.PickleValue.Dict;
import dev.gantry.formats.internal.torch.PickleValue.Instance;
import dev.gantry.formats.internal.torch.PickleValue.Int;
import dev.gantry.formats.internal.torch.PickleValue.Items;
import dev.gantry.formats.internal.torch.PickleValue.Real;
import dev.gantry.formats.internal.torch.PickleValue.Text;
import dev.gantry.formats.spi.StoredTensor;
import java.math.BigDecimal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// The tensors and notes in nested dictionaries and lists, by dotted names such as `model.0.weight`. A
/// tensor that is the whole pickle has an empty name. Numbers, strings and truth values of small
/// dictionaries, and short lists of these, are notes.
final class StateDict {
  /// The deepest nesting. This bound also refuses a container that contains itself.
  private static final int MAX_DEPTH = 64;

  /// The most values that are visited. A container that lies in several others is visited once in
  /// each of them.
  private static final int MAX_VALUES = 4_000_000;

  /// The most characters that all names may have together.
  private static final long MAX_NAME_CHARACTERS = 32 << 20;

  /// The most entries of a dictionary whose entries become notes. A larger dictionary is probably
  /// a vocabulary.
  private static final int MAX_NOTES = 64;

  /// The most items of a list that is a note.
  private static final int MAX_ITEMS = 16;

  private final Location file;
  private final long offset;
  private final TorchTensors tensors;
  private final SequencedMap<String, StoredTensor> found = new LinkedHashMap<>();
  private final SequencedMap<String, String> notes = new LinkedHashMap<>();

  /// The names of the containers around the value, the outermost first; empty for a key without a name.
  private final Deque<Optional<String>> path = new ArrayDeque<>();

  private int values;
  private long characters;

  /// @param offset the file offset of the pickle
  StateDict(Location file, long offset, TorchTensors tensors) {
    this.file = file;
    this.offset = offset;
    this.tensors = tensors;
  }

  SequencedMap<String, StoredTensor> tensors() {
    return found;
  }

  SequencedMap<String, String> notes() {
    return notes;
  }

  /// Adds the tensors and notes in a value.
  StateDict add(PickleValue value) {
    values++;
    if (values > MAX_VALUES || path.size() > MAX_DEPTH) {
      throw malformed(
          values > MAX_VALUES ? "too-many-values" : "too-deep",
          values > MAX_VALUES
              ? "containers that lie in one another have more than " + MAX_VALUES + " values"
              : "containers lie deeper in one another than " + MAX_DEPTH);
    }
    if (value instanceof Dict dict) {
      addEntries(dict);
    } else if (value instanceof Items(List<PickleValue> items)) {
      for (int i = 0; i < items.size(); i++) {
        path.addLast(Optional.of(Integer.toString(i)));
        add(items.get(i));
        path.removeLast();
      }
    } else if (value instanceof Instance call && !TorchTypes.isHarmless(call.type())) {
      addTensor(call);
    }
    return this;
  }

  private void addEntries(Dict dict) {
    boolean noted = dict.entries().size() <= MAX_NOTES;
    for (Map.Entry<PickleValue, PickleValue> entry : dict.entries().entrySet()) {
      path.addLast(Optional.ofNullable(nameOf(entry.getKey())));
      String note = noted ? note(entry.getValue()) : null;
      if (note == null) {
        add(entry.getValue());
      } else if (!path.contains(Optional.<String>empty())) {
        notes.put(name(), note);
      }
      path.removeLast();
    }
  }

  private void addTensor(Instance call) {
    String name = name();
    StoredTensor tensor = tensors.tensor(name, call);
    if (found.putIfAbsent(name, tensor) != null) {
      throw malformed("duplicate-tensor", "tensor '" + name + "' occurs twice");
    }
    if (found.size() > SafetensorsHeader.MAX_TENSORS) {
      throw malformed(
          "too-many-tensors", "more than " + SafetensorsHeader.MAX_TENSORS + " tensors");
    }
  }

  private String name() {
    StringBuilder name = new StringBuilder();
    for (Optional<String> part : path) {
      if (part.isEmpty()) {
        throw malformed(
            "unnamed-tensor",
            "a tensor lies under a key that is neither a string nor an integer, after '"
                + name
                + "'");
      }
      name.append(name.isEmpty() ? "" : ".").append(part.get());
      if (characters + name.length() > MAX_NAME_CHARACTERS) {
        throw malformed(
            "names-too-long", "the names have more than " + MAX_NAME_CHARACTERS + " characters");
      }
    }
    characters += name.length();
    return name.toString();
  }

  /// Returns a list or tuple as Python prints a list; null if it is long, or has an item that is
  /// no note.
  private static @Nullable String note(List<PickleValue> items) {
    List<String> notes = new ArrayList<>();
    for (PickleValue item : items) {
      String note = item instanceof Items || notes.size() == MAX_ITEMS ? null : note(item);
      if (note == null) {
        return null;
      }
      notes.add(item instanceof Text ? "'" + note + "'" : note);
    }
    return notes.toString();
  }

  /// The name of a dictionary's key, as Python's `str` gives it; null if the key has none.
  private static @Nullable String nameOf(PickleValue key) {
    return key instanceof Real || key instanceof Items ? null : note(key);
  }

  /// Returns a value as Python's `str` gives it; null if it is no note.
  static @Nullable String note(PickleValue value) {
    if (value instanceof Text(String text)) {
      return text;
    }
    if (value instanceof Int(long number)) {
      return Long.toString(number);
    }
    if (value instanceof Items(List<PickleValue> items)) {
      return note(items);
    }
    if (value instanceof Real(double number)) {
      return note(number);
    }
    return value instanceof Constant constant ? constant.text() : null;
  }

  /// Returns a number as Python's `str` gives it. Python writes exponents for other numbers than
  /// Java does.
  private static String note(double number) {
    if (Double.isNaN(number)) {
      return "nan";
    }
    if (Double.isInfinite(number)) {
      return number < 0 ? "-inf" : "inf";
    }
    if (number == 0) {
      return Double.toString(number);
    }
    BigDecimal decimal = new BigDecimal(Double.toString(number)).stripTrailingZeros();
    int exponent = decimal.precision() - decimal.scale() - 1;
    if (exponent >= -4 && exponent < 16) {
      return decimal.setScale(Math.max(1, decimal.scale())).toPlainString();
    }
    return "%se%s%02d"
        .formatted(
            decimal.movePointLeft(exponent).stripTrailingZeros().toPlainString(),
            exponent < 0 ? "-" : "+",
            Math.abs(exponent));
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(file, offset, kind, detail);
  }
}
