// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;

/// The bytes that surround a tensor's elements in an archive of one tensor, as `torch.save`
/// writes it.
///
/// @param head the bytes before the elements: the members before the elements' member, and that
///     member's header
/// @param tail the bytes after the elements, which are the directory
record TensorArchive(Memory.OnHost head, Memory.OnHost tail) {
  private static final int ALIGNMENT = 64;
  private static final int LOCAL_BYTES = 30;
  private static final int ZIP64_LOCAL_BYTES = 20;
  private static final long MAX_WORD = 0xFFFF_FFFFL;

  /// An entry of the directory.
  private record Entry(String name, long crc32, long size, long offset) {}

  /// @param offset the offset in its file at which the archive begins; the elements are aligned there
  static TensorArchive of(NewTensor tensor, long offset) {
    long size = tensor.source().length();
    List<Entry> entries = new ArrayList<>();
    ByteBuffer head = buffer(4096 + 64 * tensor.shape().rank());
    member(head, entries, "data.pkl", pickle(tensor.dtype(), tensor.shape()));
    member(head, entries, "byteorder", bytes("little"));
    member(head, entries, "version", bytes("3\n"));
    String name = "archive/data/0";
    boolean large = size >= MAX_WORD;
    // The checksum 0 means that there is no checksum, as in PyTorch.
    entries.add(new Entry(name, 0, size, head.position()));
    int fixed = LOCAL_BYTES + name.length() + (large ? ZIP64_LOCAL_BYTES : 0) + Integer.BYTES;
    int padding = (int) Math.floorMod(-(offset + head.position() + fixed), (long) ALIGNMENT);
    int extra = fixed - LOCAL_BYTES - name.length() + padding;
    local(head, name, 0, size, extra);
    if (large) {
      head.putShort((short) 1).putShort((short) 16).putLong(size).putLong(size);
    }
    head.putShort((short) 0x4246).putShort((short) padding).put(new byte[padding]);
    return new TensorArchive(
        memory(written(head)), memory(directory(entries, head.position() + size)));
  }

  /// Returns the whole archive of a value that is no tensor; [PickleWriter#value] lists the
  /// possible types.
  static Memory.OnHost ofValue(Object value) {
    byte[] pickle = new PickleWriter().value(value).end();
    List<Entry> entries = new ArrayList<>();
    ByteBuffer archive = buffer(8192 + pickle.length);
    member(archive, entries, "data.pkl", pickle);
    member(archive, entries, "byteorder", bytes("little"));
    member(archive, entries, "version", bytes("3\n"));
    archive.put(directory(entries, archive.position()));
    return memory(written(archive));
  }

  private static Memory.OnHost memory(byte[] bytes) {
    return new Memory.OnHost(MemorySegment.ofArray(bytes));
  }

  /// The size of the archive without the elements, in bytes.
  long bytes() {
    return head.length() + tail.length();
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static byte[] written(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.position()];
    buffer.get(0, bytes);
    return bytes;
  }

  private static void member(ByteBuffer out, List<Entry> entries, String name, byte[] contents) {
    CRC32 sum = new CRC32();
    sum.update(contents);
    String inFolder = "archive/" + name;
    entries.add(new Entry(inFolder, sum.getValue(), contents.length, out.position()));
    local(out, inFolder, sum.getValue(), contents.length, 0);
    out.put(contents);
  }

  private static void local(ByteBuffer out, String name, long crc32, long size, int extra) {
    int word = (int) Math.min(MAX_WORD, size);
    out.putInt(0x04034b50).putShort((short) (size >= MAX_WORD ? 45 : 20)).putInt(0).putInt(0);
    out.putInt((int) crc32).putInt(word).putInt(word);
    out.putShort((short) name.length()).putShort((short) extra).put(bytes(name));
  }

  private static byte[] directory(List<Entry> entries, long start) {
    ByteBuffer out = buffer(4096);
    for (Entry entry : entries) {
      boolean large = entry.size() >= MAX_WORD;
      int word = (int) Math.min(MAX_WORD, entry.size());
      short version = (short) (large ? 45 : 20);
      out.putInt(0x02014b50).putShort(version).putShort(version).putInt(0).putInt(0);
      out.putInt((int) entry.crc32()).putInt(word).putInt(word);
      out.putShort((short) entry.name().length());
      out.putShort((short) (large ? ZIP64_LOCAL_BYTES : 0));
      out.putShort((short) 0).putShort((short) 0).putShort((short) 0).putInt(0);
      out.putInt((int) entry.offset()).put(bytes(entry.name()));
      if (large) {
        out.putShort((short) 1).putShort((short) 16).putLong(entry.size()).putLong(entry.size());
      }
    }
    long size = out.position();
    boolean large = start >= MAX_WORD;
    short count = (short) entries.size();
    if (large) {
      out.putInt(0x06064b50).putLong(44).putShort((short) 45).putShort((short) 45).putLong(0);
      out.putLong(count).putLong(count).putLong(size).putLong(start);
      out.putInt(0x07064b50).putInt(0).putLong(start + size).putInt(1);
    }
    out.putInt(0x06054b50).putInt(0).putShort(count).putShort(count).putInt((int) size);
    out.putInt((int) Math.min(MAX_WORD, start)).putShort((short) 0);
    return written(out);
  }

  /// Returns the pickle of the call by which PyTorch rebuilds the tensor from its storage.
  private static byte[] pickle(DType dtype, TensorShape shape) {
    String storage = TorchTypes.storage(dtype);
    boolean typed = !storage.isEmpty();
    long elements = shape.elements().orElseThrow();
    long[] strides = new long[shape.rank()];
    long next = 1;
    for (int axis = shape.rank() - 1; axis >= 0; axis--) {
      strides[axis] = next;
      next *= Math.max(1, shape.dimension(axis));
    }
    PickleWriter pickle = new PickleWriter();
    var _ =
        pickle
            .global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3")
            .op('(')
            .op('(')
            .text("storage");
    var _ =
        typed ? pickle.global("torch", storage) : pickle.global("torch.storage", "UntypedStorage");
    var _ =
        pickle
            .text("0")
            .text("cpu")
            .integer(typed ? elements : elements * dtype.bits() / Byte.SIZE)
            .op('t')
            .op('Q')
            .integer(0)
            .integers(shape.toArray())
            .integers(strides)
            .op(0x89)
            .global("collections", "OrderedDict")
            .op(')')
            .op('R');
    if (!typed) {
      var _ = pickle.global("torch", TorchTypes.name(dtype));
    }
    return pickle.op('t').op('R').end();
  }
}
