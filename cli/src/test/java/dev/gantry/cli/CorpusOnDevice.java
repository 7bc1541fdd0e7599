// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import java.nio.file.Path;
import java.util.Map;

/// Holds `gantry digest` to the conformance corpus on a device, on a GPU host from the bundle: `CorpusOnDevice
/// FOLDER DEVICE`. Each valid file must give the reference's digests, each other one exit code 65 and one line.
public final class CorpusOnDevice {
  /// The format forbids it, and the reference keeps the last one without a word.
  private static final String REJECTED_ON_PURPOSE = "duplicate-tensor-name.safetensors";

  private CorpusOnDevice() {}

  public static void main(String[] arguments) {
    Path folder = Path.of(arguments[0]);
    Map<?, ?> verdicts = JsonTree.verdicts(folder);
    int failed = 0;
    for (Map.Entry<?, ?> verdict : verdicts.entrySet()) {
      Path file = folder.resolve((String) verdict.getKey());
      CommandLineRun run = CommandLineRun.of("digest", "--json", "--device", arguments[1], file);
      if (!agrees(
          run,
          isValid(verdict.getKey(), (Map<?, ?>) verdict.getValue()),
          (Map<?, ?>) verdict.getValue())) {
        failed++;
        System.out.println(file.getFileName() + ": " + run);
      }
    }
    System.out.printf(
        "corpus on %s: %d passed, %d failed%n", arguments[1], verdicts.size() - failed, failed);
    System.exit(failed == 0 && !verdicts.isEmpty() ? 0 : 1);
  }

  static boolean isValid(Object file, Map<?, ?> verdict) {
    return (Boolean) verdict.get("valid") && !file.equals(REJECTED_ON_PURPOSE);
  }

  private static boolean agrees(CommandLineRun run, boolean valid, Map<?, ?> verdict) {
    return valid
        ? run.exitCode() == 0
            && ((Map<?, ?>) run.json()).get("tensors").equals(verdict.get("tensors"))
        : run.exitCode() == 65 && run.out().isEmpty() && run.err().lines().count() == 1;
  }
}
