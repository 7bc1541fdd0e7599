// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.torch.PickleValue.Int;
import dev.gantry.formats.internal.torch.PickleValue.Items;
import dev.gantry.formats.internal.torch.PickleValue.Persistent;
import dev.gantry.formats.internal.torch.PickleValue.Text;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Reads the files that `torch.save` wrote before PyTorch 1.6. Such a file has five pickles: a
/// magic number, a version, a description of the machine, the object, and the names of its
/// storages. Then comes each storage, little endian, after the number of its elements.
final class LegacyFile {
  /// The magic number's pickle without its protocol and frame bytes.
  private static final byte[] MAGIC = HexFormat.of().parseHex("8a0a6cfc9c46f9206aa850192e");

  /// The magic number's pickle in protocols 0 and 1.
  private static final byte[] MAGIC_TEXT = "L119547037146038801333356L\n.".getBytes(ISO_8859_1);

  private static final int PROTOCOL_BYTES = 2;
  private static final int FRAME_BYTES = 1 + Long.BYTES;
  private static final long VERSION = 1001;

  private final FileBytes bytes;
  private final Map<String, TorchStorage> storages = new HashMap<>();

  LegacyFile(FileBytes bytes) {
    this.bytes = bytes;
  }

  /// Whether a file begins with the pickle of the magic number.
  static boolean begins(ByteBuffer start) {
    return magicBytes(start) > 0;
  }

  /// The size of the magic number's pickle; 0 if the file does not begin with it.
  private static int magicBytes(ByteBuffer start) {
    if (holds(start, 0, MAGIC_TEXT)) {
      return MAGIC_TEXT.length;
    }
    if (start.remaining() < PROTOCOL_BYTES || start.get(start.position()) != (byte) 0x80) {
      return 0;
    }
    for (int at : new int[] {PROTOCOL_BYTES, PROTOCOL_BYTES + FRAME_BYTES}) {
      if (holds(start, at, MAGIC)) {
        return at + MAGIC.length;
      }
    }
    return 0;
  }

  private static boolean holds(ByteBuffer start, int at, byte[] wanted) {
    return start.remaining() >= at + wanted.length
        && start.slice(start.position() + at, wanted.length).equals(ByteBuffer.wrap(wanted));
  }

  /// @param start the first bytes of the file, which begin as [#begins] says
  StateDict read(ByteBuffer start) {
    long from = magicBytes(start);
    Extent rest = new Extent(bytes.file(), from, bytes.length() - from);
    try (PickleInput input = PickleInput.of(bytes, rest)) {
      if (!(read(input) instanceof Int(long version)) || version != VERSION) {
        throw malformed(from, "unknown-version", "the version is not " + VERSION);
      }
      PickleValue _ = read(input);
      long at = input.position();
      PickleReader reader = new PickleReader(input, TorchTypes::isKnown);
      PickleValue value = reader.read();
      TorchTensors tensors =
          new TorchTensors(bytes.file(), (key, _) -> Optional.ofNullable(storages.get(key)));
      long keysAt = input.position();
      if (!(read(input) instanceof Items(List<PickleValue> keys))) {
        throw malformed(keysAt, "invalid-storages", "the names of the storages are no list");
      }
      findStorages(keys, input.position(), elementBytes(tensors, reader.persistent()));
      return new StateDict(bytes.file(), at, tensors).add(value);
    }
  }

  private static PickleValue read(PickleInput input) {
    return new PickleReader(input, TorchTypes::isKnown).read();
  }

  /// Returns the size of each storage's elements, in bytes, by the storage's name.
  private static Map<String, Long> elementBytes(TorchTensors tensors, List<Persistent> references) {
    Map<String, Long> sizes = new HashMap<>();
    for (Persistent each : references) {
      long size = tensors.storageType(each).bits() / Byte.SIZE;
      sizes.putIfAbsent(tensors.reference(each).key(), size);
    }
    return sizes;
  }

  private void findStorages(List<PickleValue> keys, long from, Map<String, Long> elementBytes) {
    long at = from;
    for (PickleValue each : keys) {
      Long size = each instanceof Text(String key) ? elementBytes.get(key) : null;
      if (!(each instanceof Text(String key)) || size == null) {
        throw malformed(
            at, "invalid-storages", "a storage is listed that the pickle does not name");
      }
      long left = bytes.length() - at - Long.BYTES;
      if (left < 0) {
        throw malformed(at, "storage-past-end", "the file ends before storage '" + key + "'");
      }
      long elements = number(at);
      if (elements < 0 || elements > left / size) {
        throw malformed(
            at,
            "storage-past-end",
            "storage '" + key + "' has " + elements + " elements, and the file ends before them");
      }
      at += Long.BYTES;
      storages.put(key, TorchStorage.of(new Extent(bytes.file(), at, elements * size)));
      at += elements * size;
    }
  }

  private long number(long at) {
    ByteBuffer number = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.readFully(number, at);
    return number.getLong(0);
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(bytes.file(), offset, kind, detail);
  }
}
