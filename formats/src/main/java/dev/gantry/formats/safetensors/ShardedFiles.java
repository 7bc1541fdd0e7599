package dev.gantry.formats.safetensors;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.core.MisuseException;
import dev.gantry.core.commit.NewFile;
import dev.gantry.core.commit.Source;
import dev.gantry.core.plan.PlanLimits;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/// Tensors as the files of a safetensors checkpoint. Pure.
public record ShardedFiles(List<Shard> shards, NewFile index) {
  /// A shard; the tensors are the file's parts after the first, which is the header.
  public record Shard(NewFile file, List<NewTensor> tensors) {}

  /// Largest elements first, so that each tensor is aligned to its own.
  private static final Comparator<NewTensor> IN_FILE =
      Comparator.comparingInt((NewTensor tensor) -> -tensor.dtype().bits())
          .thenComparing(NewTensor::name);

  public static ShardedFiles of(
      Path folder,
      String stem,
      List<NewTensor> tensors,
      Map<String, String> metadata,
      long shardBytes) {
    Set<String> names = new HashSet<>();
    for (NewTensor tensor : tensors) {
      if (!names.add(tensor.name())) {
        throw new MisuseException("two tensors have the name '" + tensor.name() + "'");
      }
    }
    List<List<NewTensor>> split = new ArrayList<>();
    long room = -1;
    for (NewTensor tensor : tensors) {
      if (split.isEmpty() || tensor.source().length() > room) {
        split.add(new ArrayList<>());
        room = shardBytes;
      }
      split.getLast().add(tensor);
      room -= tensor.source().length();
    }
    if (split.isEmpty()) {
      split.add(List.of());
    }
    List<Shard> shards = new ArrayList<>();
    Map<String, String> weightMap = new TreeMap<>();
    for (int i = 0; i < split.size(); i++) {
      String name =
          split.size() == 1
              ? stem + ".safetensors"
              : String.format(
                  Locale.ROOT, "%s-%05d-of-%05d.safetensors", stem, i + 1, split.size());
      List<NewTensor> sorted = split.get(i).stream().sorted(IN_FILE).toList();
      List<Source> parts = new ArrayList<>();
      parts.add(heap(header(sorted, metadata)));
      sorted.forEach(tensor -> parts.add(tensor.source()));
      shards.add(new Shard(new NewFile(folder.resolve(name), parts), sorted));
      sorted.forEach(tensor -> weightMap.put(tensor.name(), name));
    }
    long total = tensors.stream().mapToLong(tensor -> tensor.source().length()).sum();
    NewFile index =
        new NewFile(
            folder.resolve(stem + ".safetensors.index.json"),
            List.of(heap(index(weightMap, total))));
    return new ShardedFiles(shards, index);
  }

  private static Source heap(byte[] bytes) {
    return new Source.HostMemory(MemorySegment.ofArray(bytes));
  }

  private static byte[] header(List<NewTensor> tensors, Map<String, String> metadata) {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    text.writeBytes(new byte[Long.BYTES]);
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      json.writeStartObject();
      if (!metadata.isEmpty()) {
        json.writeObjectFieldStart("__metadata__");
        for (Map.Entry<String, String> note : metadata.entrySet()) {
          json.writeStringField(note.getKey(), note.getValue());
        }
        json.writeEndObject();
      }
      long offset = 0;
      for (NewTensor tensor : tensors) {
        json.writeObjectFieldStart(tensor.name());
        json.writeStringField("dtype", tensor.dtype().name());
        long[] shape = tensor.shape().toArray();
        json.writeFieldName("shape");
        json.writeArray(shape, 0, shape.length);
        json.writeFieldName("data_offsets");
        json.writeArray(new long[] {offset, offset + tensor.source().length()}, 0, 2);
        json.writeEndObject();
        offset += tensor.source().length();
      }
      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    int padding = -text.size() & (PlanLimits.BLOCK_BYTES - 1);
    text.writeBytes(" ".repeat(padding).getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    byte[] header = text.toByteArray();
    ByteBuffer.wrap(header)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length - (long) Long.BYTES);
    return header;
  }

  private static byte[] index(Map<String, String> weightMap, long total) {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      json.writeStartObject();
      json.writeObjectFieldStart("metadata");
      json.writeNumberField("total_size", total);
      json.writeEndObject();
      json.writeObjectFieldStart("weight_map");
      for (Map.Entry<String, String> entry : weightMap.entrySet()) {
        json.writeStringField(entry.getKey(), entry.getValue());
      }
      json.writeEndObject();
      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return text.toByteArray();
  }
}
