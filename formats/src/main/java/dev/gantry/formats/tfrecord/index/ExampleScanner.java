package dev.gantry.formats.tfrecord.index;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.WireFormat;
import dev.gantry.formats.tfrecord.FeatureKind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// Finds where in a serialized `tf.train.Example` the values of its features lie, without copying
/// them.
///
/// It reads all of the message, whatever is chosen, and takes and refuses what protobuf's parser
/// does: messages and lists that come in parts are merged, the last of several features of a name
/// counts, and so does the last kind of value of a feature. Fields that it does not know are passed
/// over, so it reads the context of a `tf.train.SequenceExample` as well. Not thread-safe.
final class ExampleScanner {
  private static final int FEATURES = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int ENTRY = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int KEY = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int VALUE = tag(2, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int BYTES_LIST = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int FLOAT_LIST = tag(2, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int INT64_LIST = tag(3, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int BYTES = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int PACKED = tag(1, WireFormat.WIRETYPE_LENGTH_DELIMITED);
  private static final int FLOAT = tag(1, WireFormat.WIRETYPE_FIXED32);
  private static final int INT64 = tag(1, WireFormat.WIRETYPE_VARINT);

  /// More than a name or than names can be.
  static final class LimitException extends IOException {
    private static final long serialVersionUID = 1L;

    LimitException(String detail) {
      super(detail);
    }
  }

  /// A message's fields, one after the other.
  @FunctionalInterface
  private interface Fields {
    /// @return whether it knows the field, and has read its value
    boolean read(int tag) throws IOException;
  }

  private final boolean all;
  private final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder();

  /// By name: all that were chosen, or that were found by now.
  private final SequencedMap<String, Found> features = new LinkedHashMap<>();

  private ScannedFeature spare = new ScannedFeature();
  private CodedInputStream input = CodedInputStream.newInstance(new byte[0]);
  private String name = "";
  private long scan;

  /// Features of a name, of the record where they were found last.
  private static final class Found {
    ScannedFeature feature = new ScannedFeature();
    long scan;
  }

  /// @param chosen names of features; empty for all
  ExampleScanner(Collection<String> chosen) {
    all = chosen.isEmpty();
    chosen.forEach(one -> features.put(one, new Found()));
  }

  private static int tag(int field, int wireType) {
    return field << 3 | wireType;
  }

  /// @param record from its position to its limit
  /// @throws InvalidProtocolBufferException if it is no message; [#position] is where that shows
  /// @throws LimitException if a name is longer than [IndexOptions#MOST_NAME_BYTES], or if all are
  ///     wanted and there are more than [IndexOptions#MOST_FEATURES] by now
  void scan(ByteBuffer record) throws InvalidProtocolBufferException, LimitException {
    scan++;
    input = CodedInputStream.newInstance(record);
    try {
      // What is longer than the record is found out by the first length that says so.
      int _ = input.pushLimit(record.remaining());
      fields(this::exampleField);
    } catch (InvalidProtocolBufferException | LimitException e) {
      throw e;
    } catch (IOException e) {
      throw new InvalidProtocolBufferException(e);
    }
  }

  /// How many bytes of the record have been read.
  int position() {
    return input.getTotalBytesRead();
  }

  /// The features that were chosen, or all that any record had, in the order in which they were
  /// chosen or found.
  Collection<String> names() {
    return Collections.unmodifiableCollection(features.keySet());
  }

  /// What the record has under a name, until the next scan.
  ScannedFeature feature(String wanted) {
    Found found = features.get(wanted);
    return found == null || found.scan != scan ? ScannedFeature.MISSING : found.feature;
  }

  private void message(Fields fields) throws IOException {
    int outer = input.pushLimit(input.readRawVarint32());
    fields(fields);
    input.popLimit(outer);
  }

  private void fields(Fields fields) throws IOException {
    for (int tag = input.readTag(); tag != 0; tag = input.readTag()) {
      if (!fields.read(tag) && !input.skipField(tag)) {
        throw new InvalidProtocolBufferException("a group ends that did not begin");
      }
    }
  }

  private boolean exampleField(int tag) throws IOException {
    if (tag == FEATURES) {
      message(this::featuresField);
    }
    return tag == FEATURES;
  }

  private boolean featuresField(int tag) throws IOException {
    if (tag == ENTRY) {
      name = "";
      spare.begin();
      message(this::entryField);
      keep();
    }
    return tag == ENTRY;
  }

  /// Of a name's features, the last one counts.
  private void keep() throws LimitException {
    Found found = features.get(name);
    if (found == null) {
      if (!all) {
        return;
      }
      if (features.size() == IndexOptions.MOST_FEATURES) {
        throw new LimitException(
            "more than " + IndexOptions.MOST_FEATURES + " features; choose some of them");
      }
      found = new Found();
      features.put(name, found);
    }
    ScannedFeature former = found.feature;
    found.feature = spare;
    found.scan = scan;
    spare = former;
  }

  private boolean entryField(int tag) throws IOException {
    if (tag == KEY) {
      name = key();
    } else if (tag == VALUE) {
      message(this::featureField);
    }
    return tag == KEY || tag == VALUE;
  }

  private String key() throws IOException {
    int bytes = input.readRawVarint32();
    if (bytes > IndexOptions.MOST_NAME_BYTES && bytes <= input.getBytesUntilLimit()) {
      throw new LimitException(
          "a feature's name has " + bytes + " bytes, more than " + IndexOptions.MOST_NAME_BYTES);
    }
    try {
      return utf8.decode(ByteBuffer.wrap(input.readRawBytes(bytes))).toString();
    } catch (CharacterCodingException _) {
      throw new InvalidProtocolBufferException("a feature's name is not UTF-8");
    }
  }

  private boolean featureField(int tag) throws IOException {
    if (tag == BYTES_LIST) {
      spare.become(FeatureKind.BYTES);
      message(this::bytesField);
    } else if (tag == FLOAT_LIST) {
      spare.become(FeatureKind.FLOAT);
      message(this::floatField);
    } else if (tag == INT64_LIST) {
      spare.become(FeatureKind.INT64);
      message(this::intField);
    } else {
      return false;
    }
    return true;
  }

  private boolean bytesField(int tag) throws IOException {
    if (tag == BYTES) {
      int length = input.readRawVarint32();
      spare.addBytes(position(), length);
      input.skipRawBytes(length);
    }
    return tag == BYTES;
  }

  private boolean floatField(int tag) throws IOException {
    if (tag == PACKED) {
      int length = input.readRawVarint32();
      spare.addFloats(position(), length, true);
      input.skipRawBytes(length);
      if (length % Float.BYTES != 0) {
        throw new InvalidProtocolBufferException("packed floats of " + length + " bytes");
      }
    } else if (tag == FLOAT) {
      spare.addFloats(position(), Float.BYTES, false);
      input.skipRawBytes(Float.BYTES);
    }
    return tag == PACKED || tag == FLOAT;
  }

  private boolean intField(int tag) throws IOException {
    if (tag == PACKED) {
      int outer = input.pushLimit(input.readRawVarint32());
      while (input.getBytesUntilLimit() > 0) {
        spare.addInt(input.readRawVarint64());
      }
      input.popLimit(outer);
    } else if (tag == INT64) {
      spare.addInt(input.readRawVarint64());
    }
    return tag == PACKED || tag == INT64;
  }
}
