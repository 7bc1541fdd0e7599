// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Parses one file's header: its length, its JSON, and the layout that the JSON claims.
final class HeaderParser {
  private static final int LENGTH_BYTES = Long.BYTES;

  private final FileBytes bytes;

  /// The entries in header order, which in most files is nearly the order of the bytes, so that sorting
  /// them is fast.
  private final Map<String, TensorEntryParser.Entry> entries = new LinkedHashMap<>();

  private final SequencedMap<String, String> metadata = new LinkedHashMap<>();
  private boolean metadataSeen;

  HeaderParser(FileBytes bytes) {
    this.bytes = bytes;
  }

  SafetensorsHeader parse() {
    long dataStart = LENGTH_BYTES + headerLength();
    header(new JsonReader(bytes, LENGTH_BYTES, dataStart));
    return new SafetensorsHeader(
        bytes.file(), place(dataStart), metadata, dataStart, bytes.length());
  }

  /// Reads the header's length in bytes, and checks it before it is used.
  private long headerLength() {
    OtherFormats.refuseEmpty(bytes);
    if (bytes.length() < LENGTH_BYTES) {
      throw malformed(
          0, "header-too-small", "the file has " + bytes.length() + " bytes, not even 8");
    }
    ByteBuffer word = ByteBuffer.allocate(LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.readFully(word, 0);
    long length = word.getLong(0);
    if (Long.compareUnsigned(length, bytes.length() - LENGTH_BYTES) > 0) {
      OtherFormats.refuse(bytes, "safetensors");
    }
    if (Long.compareUnsigned(length, SafetensorsHeader.MAX_HEADER_BYTES) > 0) {
      throw malformed(
          0,
          "header-too-large",
          "the first 8 bytes say that the header has "
              + Long.toUnsignedString(length)
              + " bytes, and it may have "
              + SafetensorsHeader.MAX_HEADER_BYTES
              + ": the file is damaged, or no safetensors file");
    }
    if (length > bytes.length() - LENGTH_BYTES) {
      throw malformed(
          0,
          "header-past-end",
          "the header of "
              + length
              + " bytes ends past the end of the file, which has "
              + bytes.length()
              + " bytes");
    }
    if (length == 0) {
      throw malformed(0, "header-empty", "the header is empty");
    }
    return length;
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(bytes.file(), offset, kind, detail);
  }

  private void header(JsonReader json) {
    json.require(JsonReader.Kind.OBJECT, "not-an-object", "the header");
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      String name = json.memberName();
      if (name.equals(SafetensorsHeader.METADATA)) {
        metadata(json);
      } else {
        tensor(name, json);
      }
    }
    json.end();
  }

  private void tensor(String name, JsonReader json) {
    if (entries.containsKey(name)) {
      throw json.malformed("duplicate-tensor", "tensor '" + name + "' occurs twice");
    }
    if (entries.size() == SafetensorsHeader.MAX_TENSORS) {
      throw json.malformed(
          "too-many-tensors", "more than " + SafetensorsHeader.MAX_TENSORS + " tensors");
    }
    json.countEntry();
    entries.put(name, new TensorEntryParser(name, json).parse());
  }

  /// Reads the notes as the reference implementation does: null counts as no notes, and the last of two
  /// notes of one name counts.
  private void metadata(JsonReader json) {
    if (metadataSeen) {
      throw json.malformed("duplicate-metadata", "__metadata__ occurs twice");
    }
    metadataSeen = true;
    if (json.peek() == JsonReader.Kind.NULL) {
      json.skip();
      return;
    }
    json.require(JsonReader.Kind.OBJECT, "invalid-metadata", "__metadata__");
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      String key = json.memberName();
      json.countNote();
      if (json.peek() != JsonReader.Kind.STRING) {
        throw json.unwanted(
            JsonReader.Kind.STRING,
            "metadata-not-a-string",
            "the value of '" + key + "' in __metadata__");
      }
      metadata.put(key, json.string());
    }
  }

  /// Places the tensors in the file, and checks that each byte from the end of the header to the
  /// end of the file belongs to exactly one tensor.
  private SequencedMap<String, StoredTensor> place(long dataStart) {
    List<TensorEntryParser.Entry> inFile = new ArrayList<>(entries.values());
    inFile.sort(TensorEntryParser.Entry::compareInFile);
    SequencedMap<String, StoredTensor> tensors = LinkedHashMap.newLinkedHashMap(inFile.size());
    long dataLength = bytes.length() - dataStart;
    long position = 0;
    for (TensorEntryParser.Entry entry : inFile) {
      if (entry.begin() > position) {
        throw malformed(
            dataStart + position,
            "hole",
            (entry.begin() - position) + " bytes before '" + entry.name() + "' are no tensor's");
      }
      if (entry.begin() < position) {
        throw malformed(
            dataStart + entry.begin(),
            "overlap",
            "tensor '" + entry.name() + "' begins inside another");
      }
      if (entry.end() > dataLength) {
        throw malformed(
            bytes.length(),
            "data-past-end",
            "tensor '"
                + entry.name()
                + "' ends "
                + (entry.end() - dataLength)
                + " bytes past the end of the file");
      }
      Extent extent =
          new Extent(bytes.file(), dataStart + entry.begin(), entry.end() - entry.begin());
      tensors.put(
          entry.name(), new StoredTensor(entry.name(), entry.dtype(), entry.shape(), extent));
      position = entry.end();
    }
    if (position < dataLength) {
      throw malformed(
          dataStart + position,
          "trailing-bytes",
          (dataLength - position) + " bytes after the last tensor are no tensor's");
    }
    return tensors;
  }
}
