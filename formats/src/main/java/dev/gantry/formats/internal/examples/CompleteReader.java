// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.WireFormat;
import dev.gantry.formats.internal.protobuf.ProtobufVersion;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Finds the values of the features in a serialized `tf.train.Example` or `SequenceExample`, in whatever
/// form of protobuf's encoding the record is written.
///
/// It reads the whole message, whichever features are chosen, and behaves as protobuf's parser for Java: it
/// merges messages and lists that come in parts, keeps the last of several features of one name and the
/// last kind of a feature's values, and skips unknown fields. Not thread-safe.
public final class CompleteReader implements ExampleReader {
  private static final int FIRST = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int SECOND = tag(2, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int THIRD = tag(3, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int FLOAT = tag(1, WireFormat.WIRETYPE_FIXED32);
  private static final int INT64 = tag(1, WireFormat.WIRETYPE_VARINT);
  private static final FeatureValue NONE = new FeatureValue();

  /// The deepest nesting of groups, the same as in protobuf's parser.
  private static final int MAX_DEPTH = 100;

  /// Says that a record has more names, or longer ones, than the reader's limits allow.
  public static final class LimitException extends IOException {
    private static final long serialVersionUID = 1L;

    LimitException(String detail) {
      super(detail);
    }
  }

  /// @param features the most names of features, where all features are wanted
  /// @param nameBytes the longest name, in bytes of UTF-8
  public record Limits(int features, int nameBytes) {
    static final Limits NONE = new Limits(Integer.MAX_VALUE, Integer.MAX_VALUE);
  }

  /// Reads a message's fields one after the other.
  @FunctionalInterface
  private interface Fields {
    /// @return whether it knows the field, and has read its value
    boolean read(int tag) throws IOException;
  }

  private final List<String> numbered;
  private final boolean all;
  private final boolean hasLists;
  private final Limits limits;
  private final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder();

  /// The chosen features, or where all are wanted those found so far, by name.
  private final SequencedMap<String, Found> features = new LinkedHashMap<>();

  /// The steps of each of the record's lists.
  private final Map<String, List<Merged>> lists = new HashMap<>();

  private Merged spare = new Merged();
  private CodedInputStream input = CodedInputStream.newInstance(new byte[0]);
  private MemorySegment record = MemorySegment.NULL;
  private String name = "";
  private List<Merged> steps = List.of();
  private long reads;
  private int depth;

  /// A feature's values in the record in which it was found last.
  private static final class Found {
    Merged feature = new Merged();
    long read;
  }

  /// A `Feature` message, merged from its parts.
  private static final class Merged {
    private final Map<FeatureSpec.Kind, FeatureValue> lists = new EnumMap<>(FeatureSpec.Kind.class);
    private final Set<FeatureSpec.Kind> open = EnumSet.noneOf(FeatureSpec.Kind.class);
    private final Set<FeatureSpec.Kind> before = EnumSet.noneOf(FeatureSpec.Kind.class);
    private FeatureSpec.@Nullable Kind kind;
    private boolean ambiguous;

    void clear() {
      kind = null;
      open.clear();
      before.clear();
      ambiguous = false;
    }

    /// Begins another part, which may continue the list of the last kind, but not of an earlier kind.
    void beginPart() {
      open.clear();
    }

    /// Begins a list of a kind. It continues a list of the same kind, and replaces one of another kind.
    /// When an earlier kind returns within a part, Java's parser continues that kind's list, and C++'s
    /// begins a new list.
    FeatureValue become(MemorySegment record, FeatureSpec.Kind next) {
      FeatureValue list = lists.computeIfAbsent(next, _ -> new FeatureValue());
      boolean isOpen = !open.add(next);
      if (kind != next) {
        ambiguous |= !before.add(next);
        kind = next;
        if (!isOpen) {
          list.begin(record, next);
        }
      }
      return list;
    }

    FeatureValue value() {
      return kind == null ? NONE : lists.getOrDefault(kind, NONE);
    }
  }

  private CompleteReader(
      List<String> numbered, Collection<String> chosen, boolean hasLists, Limits limits) {
    ProtobufVersion.requireReader();
    this.numbered = numbered;
    this.hasLists = hasLists;
    this.limits = limits;
    all = chosen.isEmpty() && !hasLists;
    chosen.forEach(one -> features.put(one, new Found()));
  }

  /// Makes a reader for decoding features.
  static CompleteReader of(List<FeatureLayout> features) {
    return new CompleteReader(
        features.stream().map(FeatureLayout::name).toList(),
        features.stream().filter(one -> !one.steps()).map(FeatureLayout::name).toList(),
        features.stream().anyMatch(FeatureLayout::steps),
        Limits.NONE);
  }

  /// Makes a reader of a record's features, without feature lists.
  ///
  /// @param chosen the wanted features' names; empty for all
  public static CompleteReader of(Collection<String> chosen, Limits limits) {
    return new CompleteReader(List.of(), chosen, false, limits);
  }

  private static int tag(int field, int wireType) {
    return field << 3 | wireType;
  }

  /// @throws InvalidProtocolBufferException if the bytes are no valid message; [#position] tells where
  /// @throws LimitException if a name is longer than the limit, or if all features are wanted and the
  ///     records so far have more than the limit
  public void read(MemorySegment bytes) throws InvalidProtocolBufferException, LimitException {
    reads++;
    record = bytes;
    lists.clear();
    depth = 0;
    int length = Math.toIntExact(bytes.byteSize());
    // From a direct buffer, CodedInputStream would copy the whole record to the heap where
    // protobuf-java
    // runs without Unsafe.
    input = CodedInputStream.newInstance(new MemoryStream(bytes));
    try {
      // The limit makes a field that is longer than the record an error.
      int _ = input.pushLimit(length);
      fields(this::exampleField);
    } catch (InvalidProtocolBufferException | LimitException e) {
      throw e;
    } catch (IOException e) {
      throw new InvalidProtocolBufferException(e);
    }
  }

  /// How many bytes of the record were read.
  public int position() {
    return input.getTotalBytesRead();
  }

  /// The chosen features' names, or all names that any record had so far, in the order in which they were
  /// chosen or found.
  public Collection<String> names() {
    return Collections.unmodifiableCollection(features.keySet());
  }

  /// Returns the record's values of a feature.
  public FeatureValue feature(String wanted) {
    Found found = features.get(wanted);
    return found == null || found.read != reads ? NONE : found.feature.value();
  }

  /// Whether a feature returns to a kind that it had before; parsers differ on such a feature.
  public boolean isAmbiguous(String wanted) {
    Found found = features.get(wanted);
    return found != null && found.read == reads && found.feature.ambiguous;
  }

  @Override
  public long steps(int feature) {
    List<Merged> found = lists.get(numbered.get(feature));
    return found == null ? -1 : found.size();
  }

  @Override
  public FeatureValue value(int feature) {
    return feature(numbered.get(feature));
  }

  @Override
  public FeatureValue step(int feature, long step) {
    return lists.getOrDefault(numbered.get(feature), List.of()).get((int) step).value();
  }

  private void message(Fields fields) throws IOException {
    int outer = input.pushLimit(input.readRawVarint32());
    enter();
    fields(fields);
    depth--;
    input.popLimit(outer);
  }

  private void fields(Fields fields) throws IOException {
    for (int tag = input.readTag(); tag != 0; tag = input.readTag()) {
      if (!fields.read(tag) && !skip(tag)) {
        throw new InvalidProtocolBufferException("a group ends that did not begin");
      }
    }
  }

  /// Skips an unknown field as protobuf's generated parsers do. [CodedInputStream#skipField] differs: it
  /// refuses other varints of more than 64 bits.
  ///
  /// @return false at the end of a group
  private boolean skip(int tag) throws IOException {
    return switch (WireFormat.getTagWireType(tag)) {
      case WireFormat.WIRETYPE_VARINT -> {
        long _ = input.readRawVarint64();
        yield true;
      }
      case WireFormat.WIRETYPE_START_GROUP -> {
        enter();
        int inner = input.readTag();
        while (inner != 0 && skip(inner)) {
          inner = input.readTag();
        }
        depth--;
        input.checkLastTagWas(
            tag(WireFormat.getTagFieldNumber(tag), WireFormat.WIRETYPE_END_GROUP));
        yield true;
      }
      case WireFormat.WIRETYPE_END_GROUP -> false;
      default -> input.skipField(tag);
    };
  }

  private void enter() throws InvalidProtocolBufferException {
    if (depth == MAX_DEPTH) {
      throw new InvalidProtocolBufferException("more than " + MAX_DEPTH + " nested messages");
    }
    depth++;
  }

  private boolean exampleField(int tag) throws IOException {
    if (tag == FIRST) {
      message(this::featuresField);
      return true;
    }
    if (tag == SECOND && hasLists) {
      message(this::featureListsField);
      return true;
    }
    return false;
  }

  private boolean featuresField(int tag) throws IOException {
    if (tag == FIRST) {
      name = "";
      spare.clear();
      message(this::entryField);
      keep();
    }
    return tag == FIRST;
  }

  /// Keeps a feature in place of an earlier one of its name.
  private void keep() throws LimitException {
    Found found = features.get(name);
    if (found == null) {
      if (!all) {
        return;
      }
      if (features.size() == limits.features()) {
        throw new LimitException(
            "more than " + limits.features() + " features; choose some of them");
      }
      found = new Found();
      features.put(name, found);
    }
    Merged former = found.feature;
    found.feature = spare;
    found.read = reads;
    spare = former;
  }

  private boolean entryField(int tag) throws IOException {
    if (tag == FIRST) {
      name = key();
    } else if (tag == SECOND) {
      spare.beginPart();
      message(inner -> featureField(spare, inner));
    }
    return isOfEntry(tag);
  }

  /// Skips fields of a map's entry that are neither key nor value, as protobuf's parser does.
  private boolean isOfEntry(int tag) throws IOException {
    return tag == FIRST || tag == SECOND || input.skipField(tag);
  }

  private boolean featureListsField(int tag) throws IOException {
    if (tag == FIRST) {
      name = "";
      steps = new ArrayList<>();
      message(this::listEntryField);
      lists.put(name, steps);
    }
    return tag == FIRST;
  }

  private boolean listEntryField(int tag) throws IOException {
    if (tag == FIRST) {
      name = key();
    } else if (tag == SECOND) {
      message(this::stepField);
    }
    return isOfEntry(tag);
  }

  private boolean stepField(int tag) throws IOException {
    if (tag == FIRST) {
      Merged step = new Merged();
      steps.add(step);
      message(inner -> featureField(step, inner));
    }
    return tag == FIRST;
  }

  private String key() throws IOException {
    int bytes = input.readRawVarint32();
    if (bytes > limits.nameBytes() && bytes <= input.getBytesUntilLimit()) {
      throw new LimitException(
          "a feature's name has " + bytes + " bytes, more than " + limits.nameBytes());
    }
    try {
      return utf8.decode(ByteBuffer.wrap(input.readRawBytes(bytes))).toString();
    } catch (CharacterCodingException _) {
      throw new InvalidProtocolBufferException("a feature's name is not UTF-8");
    }
  }

  private boolean featureField(Merged feature, int tag) throws IOException {
    if (tag == FIRST) {
      FeatureValue list = feature.become(record, FeatureSpec.Kind.BYTES);
      message(inner -> bytesField(list, inner));
    } else if (tag == SECOND) {
      FeatureValue list = feature.become(record, FeatureSpec.Kind.FLOAT);
      message(inner -> floatField(list, inner));
    } else if (tag == THIRD) {
      FeatureValue list = feature.become(record, FeatureSpec.Kind.INT64);
      message(inner -> intField(list, inner));
    } else {
      return false;
    }
    return true;
  }

  private boolean bytesField(FeatureValue list, int tag) throws IOException {
    if (tag == FIRST) {
      int length = input.readRawVarint32();
      list.add(position(), length, 1);
      input.skipRawBytes(length);
    }
    return tag == FIRST;
  }

  private boolean floatField(FeatureValue list, int tag) throws IOException {
    if (tag == FIRST) {
      int length = input.readRawVarint32();
      if (length != 0) {
        list.add(position(), length, length / Float.BYTES);
      }
      input.skipRawBytes(length);
      if (length % Float.BYTES != 0) {
        throw new InvalidProtocolBufferException("packed floats of " + length + " bytes");
      }
    } else if (tag == FLOAT) {
      list.addUnpackedFloat(position());
      input.skipRawBytes(Float.BYTES);
    }
    return tag == FIRST || tag == FLOAT;
  }

  private boolean intField(FeatureValue list, int tag) throws IOException {
    if (tag == FIRST) {
      int outer = input.pushLimit(input.readRawVarint32());
      while (input.getBytesUntilLimit() > 0) {
        list.addInteger(input.readRawVarint64());
      }
      input.popLimit(outer);
    } else if (tag == INT64) {
      list.addInteger(input.readRawVarint64());
    }
    return tag == FIRST || tag == INT64;
  }
}
