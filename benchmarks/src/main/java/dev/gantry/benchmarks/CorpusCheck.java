// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.cli.GantryCommand;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;

/// Holds `gantry digest` to the conformance corpus on a device: `CorpusCheck FOLDER DEVICE`. Every
/// valid file must give the reference's digests, every other one exit code 65 and one line.
public final class CorpusCheck {
  /// Accepted by the reference, forbidden by the format, rejected here.
  private static final String REJECTED_ON_PURPOSE = "duplicate-tensor-name.safetensors";

  /// @param valid whether the reference reads the file
  /// @param digests SHA-256 by tensor
  private record Verdict(boolean valid, Map<String, String> digests) {}

  private CorpusCheck() {}

  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    int agreed = 0;
    int failed = 0;
    for (Map.Entry<String, Verdict> entry : verdicts(folder.resolve("expected.json")).entrySet()) {
      String difference =
          difference(folder.resolve(entry.getKey()), entry.getValue(), arguments[1]);
      if (difference.isEmpty()) {
        agreed++;
      } else {
        failed++;
        System.out.println(entry.getKey() + ": " + difference);
      }
    }
    System.out.printf("corpus on %s: %d passed, %d failed%n", arguments[1], agreed, failed);
    System.exit(agreed > 0 && failed == 0 ? 0 : 1);
  }

  /// What is not as the verdict says; empty where nothing is.
  private static String difference(Path file, Verdict verdict, String device) throws IOException {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    int exit =
        GantryCommand.run(
            new PrintWriter(out),
            new PrintWriter(err),
            "digest",
            "--json",
            "--device",
            device,
            file.toString());
    if (!verdict.valid()) {
      boolean refused =
          exit == 65 && out.toString().isEmpty() && err.toString().lines().count() == 1;
      return refused ? "" : "exit code " + exit + ", " + err;
    }
    if (exit != 0) {
      return "exit code " + exit + ", " + err;
    }
    Map<String, String> digests = new TreeMap<>();
    try (JsonParser json = new JsonFactory().createParser(out.toString())) {
      readDigests(json, digests);
    }
    return digests.equals(verdict.digests()) ? "" : "other digests than the reference's";
  }

  private static Map<String, Verdict> verdicts(Path expected) throws IOException {
    Map<String, Verdict> verdicts = new TreeMap<>();
    try (JsonParser json = new JsonFactory().createParser(Files.readString(expected))) {
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String file = json.currentName();
        boolean valid = false;
        Map<String, String> digests = new TreeMap<>();
        json.nextToken();
        while (json.nextToken() == JsonToken.FIELD_NAME) {
          String field = json.currentName();
          json.nextToken();
          switch (field) {
            case "valid" -> valid = json.getBooleanValue();
            case "tensors" -> readTensors(json, digests);
            default -> json.skipChildren();
          }
        }
        verdicts.put(file, new Verdict(valid && !file.equals(REJECTED_ON_PURPOSE), digests));
      }
    }
    return verdicts;
  }

  /// Reads the `tensors` member of an object, and no other.
  private static void readDigests(JsonParser json, Map<String, String> digests) throws IOException {
    json.nextToken();
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      boolean tensors = json.currentName().equals("tensors");
      json.nextToken();
      if (tensors) {
        readTensors(json, digests);
      } else {
        json.skipChildren();
      }
    }
  }

  private static void readTensors(JsonParser json, Map<String, String> digests) throws IOException {
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String tensor = json.currentName();
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        boolean digest = json.currentName().equals("sha256");
        json.nextToken();
        if (digest) {
          digests.put(tensor, json.getText());
        } else {
          json.skipChildren();
        }
      }
    }
  }
}
