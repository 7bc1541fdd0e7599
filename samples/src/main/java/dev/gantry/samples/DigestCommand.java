package dev.gantry.samples;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.core.io.PathKind;
import dev.gantry.core.io.TransferReport;
import dev.gantry.formats.safetensors.SafetensorsCheckpoint;
import dev.gantry.formats.safetensors.TensorInfo;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `digest`: proof that the bytes arrive.
@Command(
    name = "digest",
    description = "Loads through the engine and prints the SHA-256 of every tensor.")
final class DigestCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "FILE",
      description = "A safetensors file, a folder of them, or an index.json.")
  private Path file;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  @Mixin private DeviceOption device;

  @Override
  public void run() {
    SafetensorsCheckpoint checkpoint = SafetensorsCheckpoint.open(file);
    try (dev.gantry.core.Gantry session = dev.gantry.core.Gantry.open()) {
      Digests digests = new Digests(session, device.device());
      Map<String, String> byName = digests.of(checkpoint.tensors().values());
      PrintWriter out = spec.commandLine().getOut();
      if (json) {
        Json.print(out, generator -> write(checkpoint, byName, digests.report(), generator));
      } else {
        byName.forEach((name, digest) -> out.println(digest + "  " + Table.line(name)));
        out.flush();
      }
    }
  }

  private static void write(
      SafetensorsCheckpoint checkpoint,
      Map<String, String> byName,
      TransferReport report,
      JsonGenerator json)
      throws IOException {
    json.writeStartObject();
    json.writeObjectFieldStart("tensors");
    for (TensorInfo tensor : checkpoint.tensors().values()) {
      json.writeObjectFieldStart(tensor.name());
      InspectCommand.writeType(tensor, json);
      json.writeStringField("sha256", byName.get(tensor.name()));
      json.writeEndObject();
    }
    json.writeEndObject();
    json.writeNumberField("bytes", checkpoint.totalBytes());
    json.writeObjectFieldStart("path");
    for (PathKind path : PathKind.values()) {
      json.writeNumberField(path.toString(), report.bytes(path));
    }
    json.writeEndObject();
    json.writeEndObject();
  }
}
