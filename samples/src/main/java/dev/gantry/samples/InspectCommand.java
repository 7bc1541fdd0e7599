package dev.gantry.samples;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.formats.safetensors.SafetensorsCheckpoint;
import dev.gantry.formats.safetensors.TensorInfo;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `inspect`: what is in a checkpoint, without reading its data.
@Command(name = "inspect", description = "Shows what a checkpoint holds, without loading it.")
final class InspectCommand implements Runnable {
  private static final int PAGE_BYTES = 4096;

  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "FILE",
      description = "A safetensors file, a folder of them, or an index.json.")
  private Path file;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  @Override
  public void run() {
    SafetensorsCheckpoint checkpoint = SafetensorsCheckpoint.open(file);
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      Json.print(out, generator -> write(checkpoint, generator));
    } else {
      print(checkpoint, out);
    }
  }

  private static void write(SafetensorsCheckpoint checkpoint, JsonGenerator json)
      throws IOException {
    json.writeStartObject();
    json.writeStringField("format", "safetensors");
    json.writeObjectFieldStart("tensors");
    for (TensorInfo tensor : checkpoint.tensors().values()) {
      json.writeObjectFieldStart(tensor.name());
      writeType(tensor, json);
      json.writeStringField("file", tensor.extent().file().toString());
      json.writeNumberField("offset", tensor.extent().offset());
      json.writeNumberField("length", tensor.extent().length());
      json.writeEndObject();
    }
    json.writeEndObject();
    json.writeObjectFieldStart("metadata");
    for (Map.Entry<String, String> note : checkpoint.metadata().entrySet()) {
      json.writeStringField(note.getKey(), note.getValue());
    }
    json.writeEndObject();
    json.writeEndObject();
  }

  /// The fields that say what a tensor is.
  static void writeType(TensorInfo tensor, JsonGenerator json) throws IOException {
    json.writeStringField("dtype", tensor.dtype().name());
    json.writeArrayFieldStart("shape");
    for (long dimension : tensor.shape().toArray()) {
      json.writeNumber(dimension);
    }
    json.writeEndArray();
  }

  private static void print(SafetensorsCheckpoint checkpoint, PrintWriter out) {
    long onPages =
        checkpoint.tensors().values().stream()
            .filter(tensor -> tensor.extent().offset() % PAGE_BYTES == 0)
            .count();
    long misaligned =
        checkpoint.tensors().values().stream()
            .filter(tensor -> tensor.extent().offset() % tensor.dtype().alignmentBytes() != 0)
            .count();
    out.printf(
        "safetensors, %,d file(s), %,d tensors, %,d bytes; %,d start on a page, %,d are not aligned"
            + " to their dtype%n",
        checkpoint.files().size(),
        checkpoint.tensors().size(),
        checkpoint.totalBytes(),
        onPages,
        misaligned);
    checkpoint
        .metadata()
        .forEach((key, value) -> out.printf("  %s = %s%n", Table.line(key), Table.line(value)));
    Table table = new Table("tensor", "dtype", "shape", "offset", "bytes", "file");
    for (TensorInfo tensor : checkpoint.tensors().values()) {
      table.row(
          tensor.name(),
          tensor.dtype().name(),
          tensor.shape().toString(),
          Long.toString(tensor.extent().offset()),
          Long.toString(tensor.extent().length()),
          String.valueOf(tensor.extent().file().getFileName()));
    }
    table.print(out);
    out.flush();
  }
}
