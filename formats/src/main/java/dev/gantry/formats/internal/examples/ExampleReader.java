// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Finds the values of the features in serialized `tf.train.Example` or `SequenceExample`
/// records, one record after the other. It accepts every form of protobuf's encoding.
///
/// It reads by protobuf's rules: it merges messages and lists that come in parts, keeps the last
/// of several features of one name and the last kind of a feature's values, and skips unknown
/// fields. Parsers differ on a feature that returns to a kind that it had before
/// ([FeatureValue#isAmbiguous]): this reader begins a new list, as the C++ parser does. Features
/// are numbered in the order in which they were chosen or found. Not thread-safe.
public final class ExampleReader {
  /// The tag of a length-delimited field 1, which is an entry, a key, a step or a list of values.
  private static final int FIRST = 0x0a;

  private static final int SECOND = 0x12;
  private static final int THIRD = 0x1a;

  /// The tags of numbers of lists that are not packed.
  private static final int FLOAT = 0x0d;

  private static final int INT64 = 0x08;

  /// The most pieces of a record's values, each of which takes 16 bytes of heap: strings, numbers
  /// that are not packed, and parts of lists.
  private static final int MAX_PIECES = 1 << 21;

  private static final FeatureValue NONE = new FeatureValue();

  /// @param features the most names of features, if all features are wanted
  /// @param nameBytes the longest name, in bytes of UTF-8
  public record Limits(int features, int nameBytes) {
    public static final Limits NONE = new Limits(Integer.MAX_VALUE, Integer.MAX_VALUE);

    /// The limits of readers of all features: each feature takes some hundred bytes of heap, and
    /// its name twice.
    public static final Limits OF_ALL = new Limits(1 << 16, 1 << 10);
  }

  private record Key(String name, boolean isList) {}

  /// A feature or a feature list, and its values in the last record that has it.
  private static final class Slot {
    final Key key;
    final boolean isList;
    final MemorySegment bytes;
    final int number;

    /// The values; for a feature list, the places of its parts.
    FeatureValue value = new FeatureValue();

    long record;

    /// The part of a feature list that has the next step, and the next step's offset in it.
    int part;

    long next;

    Slot(Key key, int number) {
      this.key = key;
      this.isList = key.isList();
      this.number = number;
      bytes = MemorySegment.ofArray(key.name().getBytes(StandardCharsets.UTF_8));
    }
  }

  private final boolean all;
  private final boolean checked;
  private final boolean hasLists;
  private final Limits limits;
  private final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder();
  private final WireCursor cursor = new WireCursor();
  private Slot[] slots = {};
  private int size;
  private final Map<Key, Slot> byKey = new HashMap<>();
  private final FeatureValue step = new FeatureValue();
  private FeatureValue spare = new FeatureValue();
  private RawRecord where = RawRecord.NONE;
  private MemorySegment record = MemorySegment.NULL;
  private long records;
  private int pieces;

  /// The slot that is tried first: records mostly have the same features in the same order.
  private int guess;

  private ExampleReader(boolean all, boolean checked, boolean hasLists, Limits limits) {
    this.all = all;
    this.checked = checked;
    this.hasLists = hasLists;
    this.limits = limits;
  }

  /// Makes a reader for decoding features; it skips the values of all other features unchecked.
  static ExampleReader decoding(List<FeatureLayout> features) {
    return of(features, false);
  }

  /// @param checked whether to check the values of all other features, too
  static ExampleReader of(List<FeatureLayout> features, boolean checked) {
    boolean lists = features.stream().anyMatch(FeatureLayout::steps);
    ExampleReader reader = new ExampleReader(false, checked, lists, Limits.NONE);
    features.forEach(feature -> reader.add(new Key(feature.name(), feature.steps())));
    return reader;
  }

  /// Makes a reader of features without steps, which checks whole records.
  ///
  /// @param chosen the wanted features' names; empty for all
  public static ExampleReader of(Collection<String> chosen, Limits limits) {
    ExampleReader reader = new ExampleReader(chosen.isEmpty(), true, false, limits);
    chosen.forEach(name -> reader.add(new Key(name, false)));
    return reader;
  }

  /// Makes a reader of all features and feature lists, which checks whole records.
  static ExampleReader ofAll() {
    return new ExampleReader(true, true, true, Limits.OF_ALL);
  }

  private Slot add(Key key) {
    Slot slot = new Slot(key, size);
    if (size == slots.length) {
      slots = Arrays.copyOf(slots, 2 * size + 1);
    }
    slots[size++] = slot;
    byKey.put(key, slot);
    return slot;
  }

  /// Reads a record. Its bytes must stay valid until the next record is read.
  ///
  /// @throws dev.gantry.core.MalformedFileException of kind `invalid-proto` if the record is no valid message
  /// @throws MisuseException if a name is longer than the limit, or if all features are wanted and the records so
  ///     far have more than the limit
  public void read(RawRecord next) {
    where = next;
    record = next.data();
    records++;
    pieces = 0;
    guess = 0;
    cursor.start(next);
    long end = record.byteSize();
    while (cursor.at() < end) {
      int tag = cursor.tag(end);
      if (tag == FIRST || (tag == SECOND && hasLists)) {
        map(cursor.fieldEnd(end), tag == SECOND);
      } else {
        cursor.skip(tag, end);
      }
    }
  }

  private void map(long end, boolean lists) {
    while (cursor.at() < end) {
      int tag = cursor.tag(end);
      if (tag == FIRST) {
        long entryEnd = cursor.fieldEnd(end);
        long start = cursor.at();
        int guessed = guess;
        if (!readsUsual(entryEnd, lists)) {
          cursor.moveTo(start);
          guess = guessed;
          if (!reads(entryEnd, lists, checked)) {
            cursor.moveTo(start);
            boolean _ = reads(entryEnd, lists, true);
          }
        }
      } else {
        cursor.skip(tag, end);
      }
    }
  }

  /// Reads an entry in its usual form: an expected name, then its value, and nothing else.
  ///
  /// @return false if the entry has another form; the cursor may be anywhere in it then
  private boolean readsUsual(long end, boolean list) {
    if (cursor.at() == end || cursor.tag(end) != FIRST) {
      return false;
    }
    long nameEnd = cursor.fieldEnd(end);
    Slot slot = expected(nameEnd, list);
    cursor.moveTo(nameEnd);
    if ((slot == null && checked) || !cursor.only(SECOND, end)) {
      return false;
    }
    if (slot == null) {
      cursor.moveTo(end);
      return true;
    }
    slot.value.clear();
    value(slot.value, list, end);
    found(slot);
    return true;
  }

  /// Reads a name and its value, in either order; the last name counts.
  ///
  /// @param whole whether to read the value of a feature that is not wanted, too
  /// @return false if it has skipped a value, and a name that came later shows that the value is
  ///     wanted
  private boolean reads(long end, boolean list, boolean whole) {
    Slot slot = null;
    String name = "";
    boolean named = false;
    boolean valued = false;
    boolean skipped = false;
    while (cursor.at() < end) {
      int tag = cursor.tag(end);
      if (tag != FIRST && tag != SECOND) {
        cursor.skip(tag, end);
        continue;
      }
      long fieldEnd = cursor.fieldEnd(end);
      if (tag == FIRST) {
        slot = expected(fieldEnd, list);
        name = slot == null && checked ? name(fieldEnd) : "";
        named = true;
        cursor.moveTo(fieldEnd);
      } else if (named && slot == null && !whole) {
        skipped = true;
        cursor.moveTo(fieldEnd);
      } else {
        if (!valued) {
          spare.clear();
        }
        valued = true;
        value(spare, list, fieldEnd);
      }
    }
    if (slot == null && (checked || !named)) {
      slot = slot(new Key(name, list));
    }
    if (slot != null && !skipped) {
      if (!valued) {
        spare.clear();
      }
      keep(slot);
    }
    return slot == null || !skipped;
  }

  /// Returns the slot of the feature whose name comes next in the record; null if the name is not
  /// expected here.
  private @Nullable Slot expected(long nameEnd, boolean list) {
    long start = cursor.at();
    // A checking reader looks names up in a map if their order is not the expected one.
    int tries = checked ? Math.min(1, size) : size;
    for (int i = 0; i < tries; i++) {
      Slot slot = slots[guess + i < size ? guess + i : guess + i - size];
      MemorySegment key = slot.bytes;
      if (key.byteSize() == nameEnd - start
          && slot.isList == list
          && MemorySegment.mismatch(record, start, nameEnd, key, 0, key.byteSize()) < 0) {
        expectAfter(slot);
        return slot;
      }
    }
    return null;
  }

  private void expectAfter(Slot slot) {
    guess = slot.number + 1 == size ? 0 : slot.number + 1;
  }

  private @Nullable Slot slot(Key key) {
    Slot slot = byKey.get(key);
    if (slot == null && all) {
      if (size == limits.features()) {
        throw refused("more than " + limits.features() + " features; choose some of them");
      }
      slot = add(key);
    }
    if (slot != null) {
      expectAfter(slot);
    }
    return slot;
  }

  private String name(long end) {
    long length = end - cursor.at();
    if (length > limits.nameBytes()) {
      throw refused("a feature's name has " + length + " bytes, more than " + limits.nameBytes());
    }
    byte[] bytes = record.asSlice(cursor.at(), length).toArray(ValueLayout.JAVA_BYTE);
    try {
      return utf8.decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException _) {
      throw cursor.fault("a feature's name is not UTF-8");
    }
  }

  private MisuseException refused(String detail) {
    return new MisuseException(where.file() + ": record " + where.number() + ": " + detail);
  }

  /// Keeps the values that were read, which replace earlier values of the same feature.
  private void keep(Slot slot) {
    FeatureValue former = slot.value;
    slot.value = spare;
    spare = former;
    found(slot);
  }

  private void found(Slot slot) {
    slot.record = records;
    if (slot.isList) {
      slot.part = 0;
      slot.next = slot.value.start(0);
    }
  }

  /// Reads a feature, or a part of a feature list.
  private void value(FeatureValue value, boolean list, long end) {
    if (!list) {
      feature(value, end);
      return;
    }
    long start = cursor.at();
    long count = 0;
    while (nextStep(end)) {
      count++;
    }
    countPiece();
    value.add(start, end - start, count);
  }

  private void countPiece() {
    pieces++;
    if (pieces > MAX_PIECES) {
      throw cursor.fault(
          "more than " + MAX_PIECES + " strings, numbers that are not packed, and parts of lists");
    }
  }

  /// Reads the next step of a part of a feature list.
  ///
  /// @return whether there is a next step
  private boolean nextStep(long end) {
    while (cursor.at() < end) {
      int tag = cursor.tag(end);
      if (tag == FIRST) {
        // Each step takes the memory of the step before.
        int before = pieces;
        step.clear();
        feature(step, cursor.fieldEnd(end));
        pieces = before;
        return true;
      }
      cursor.skip(tag, end);
    }
    return false;
  }

  /// Reads a feature. Nearly all features hold one list of one field: the loops here and in [#list] test at
  /// their ends whether more follows, so that compilers make straight code of them.
  private void feature(FeatureValue value, long end) {
    if (cursor.at() == end) {
      return;
    }
    do {
      int tag = cursor.tag(end);
      FeatureSpec.Kind kind =
          switch (tag) {
            case FIRST -> FeatureSpec.Kind.BYTES;
            case SECOND -> FeatureSpec.Kind.FLOAT;
            case THIRD -> FeatureSpec.Kind.INT64;
            default -> null;
          };
      if (kind == null) {
        cursor.skip(tag, end);
      } else {
        list(value, kind, cursor.fieldEnd(end));
      }
    } while (cursor.at() < end);
  }

  private void list(FeatureValue value, FeatureSpec.Kind kind, long end) {
    value.become(record, kind);
    if (cursor.at() == end) {
      return;
    }
    do {
      int tag = cursor.tag(end);
      long start = cursor.at();
      if (tag != FIRST) {
        cursor.skip(tag, end);
        if (kind == FeatureSpec.Kind.FLOAT && tag == FLOAT) {
          countPiece();
          value.addUnpackedFloat(start);
        } else if (kind == FeatureSpec.Kind.INT64 && tag == INT64) {
          countPiece();
          value.add(start, cursor.at() - start, 1);
        }
        continue;
      }
      // The field is one string, or numbers that lie end to end.
      long fieldEnd = cursor.fieldEnd(end);
      start = cursor.at();
      long length = fieldEnd - start;
      long count =
          switch (kind) {
            case BYTES -> 1;
            case FLOAT -> {
              if (length % Float.BYTES != 0) {
                throw cursor.fault("packed floats of " + length + " bytes");
              }
              yield length / Float.BYTES;
            }
            case INT64 -> cursor.varints(fieldEnd);
          };
      if (count > 0) {
        countPiece();
        value.add(start, length, count);
      }
      cursor.moveTo(fieldEnd);
    } while (cursor.at() < end);
  }

  /// How many features are wanted, or were found so far if all are wanted.
  public int size() {
    return size;
  }

  public String name(int feature) {
    return slots[feature].key.name();
  }

  boolean isList(int feature) {
    return slots[feature].isList;
  }

  /// How many steps the record's feature list has; -1 if the record lacks the list.
  long steps(int feature) {
    return value(feature) == NONE ? -1 : value(feature).count();
  }

  /// Returns the record's values of a feature without steps.
  public FeatureValue value(int feature) {
    Slot slot = slots[feature];
    return slot.record == records ? slot.value : NONE;
  }

  /// Returns the next step of a feature list, which must have a next step. The values are valid
  /// until another step is read.
  FeatureValue step(int feature) {
    Slot slot = slots[feature];
    cursor.moveTo(slot.next);
    while (!nextStep(slot.value.end(slot.part))) {
      cursor.moveTo(slot.value.start(++slot.part));
    }
    slot.next = cursor.at();
    return step;
  }
}
