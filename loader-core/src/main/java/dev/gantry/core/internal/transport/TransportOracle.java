// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.mapped.KeptFiles;
import dev.gantry.core.internal.plan.PlanLimits;
import org.jspecify.annotations.Nullable;

/// Decides which transport moves the bytes of a file, and gives the reason why no better transport
/// serves. Loads, rings, saves and `gantry doctor` all ask it. Pure; thread-safe.
///
/// Bytes for host memory go by `host`. Between a file and a CUDA device:
///
/// - Bytes in the page cache are `staged`, which is faster than any transport that bypasses the cache.
/// - Other bytes go by `gds` if the file can be opened with `O_DIRECT` and libcufile accepts it;
///   otherwise they are `staged`.
/// - Batches whose files are read repeatedly are `mapped`; [KeptFiles] decides that for each batch.
/// - `compat` serves only if it was asked for: it copies through the CPU as `staged` does, and more slowly.
/// - Once cuFile has failed for a file, all of its bytes are `staged`.
///
/// A transport that was asked for by name is used or refused, never replaced.
public final class TransportOracle {
  /// The facts by which the oracle decides about one file.
  ///
  /// @param file the file, for messages
  /// @param device the device whose memory the bytes are read into or written from
  /// @param only the only transport to use, or null to have the best one chosen
  /// @param descriptorAbsence the reason why the file has no descriptor; empty if it has one
  /// @param directAbsence the reason why the file cannot be read or written past the page cache;
  ///     empty if it can
  /// @param failure the failure after which cuFile is no longer used for the file; empty if there was none
  public record Question(
      Location file,
      Device device,
      @Nullable Transport only,
      String descriptorAbsence,
      String directAbsence,
      String failure) {
    Question withFailure(String observed) {
      return new Question(file, device, only, descriptorAbsence, directAbsence, observed);
    }
  }

  /// @param reason the reason why no better transport serves; empty if this is the best
  public record Answer(Transport transport, String reason) {}

  /// Asks cuFile whether it accepts the file. Asking registers the file, which takes time, so the
  /// oracle asks only if its decision depends on the answer.
  @FunctionalInterface
  public interface CuFileProbe {
    /// @param transport either `gds` or `compat`
    /// @return the reason why cuFile does not accept the file for this transport; empty if it does
    String refusal(Transport transport);
  }

  private TransportOracle() {}

  /// @param cached whether the bytes are in the page cache
  /// @throws DeviceUnavailableException if the only transport asked for cannot serve
  public static Answer decide(Question question, boolean cached, CuFileProbe cuFile) {
    return switch (question.device()) {
      case Device.Host _ -> forHost(question);
      case Device.Cuda _ -> forCuda(question, cached, cuFile);
    };
  }

  private static Answer forHost(Question question) {
    Transport only = question.only();
    if (only != null && only != Transport.HOST) {
      throw unavailable(only, "it serves memory of a CUDA device, not of " + question.device());
    }
    return new Answer(Transport.HOST, question.directAbsence());
  }

  private static Answer forCuda(Question question, boolean cached, CuFileProbe cuFile) {
    Transport only = question.only();
    // A switch with a case for null would be linked in a process's first load, which takes
    // milliseconds.
    if (only == null) {
      return byEvidence(question, cached, cuFile);
    }
    return switch (only) {
      case HOST ->
          throw unavailable(only, "it serves host memory, not memory of " + question.device());
      case STAGED, MAPPED -> new Answer(only, "asked for");
      case GDS, COMPAT -> {
        String refusal = refusal(question, only, cuFile);
        if (!refusal.isEmpty()) {
          throw unavailable(only, question.file() + ": " + refusal);
        }
        yield new Answer(only, "asked for");
      }
    };
  }

  private static Answer byEvidence(Question question, boolean cached, CuFileProbe cuFile) {
    if (!question.failure().isEmpty()) {
      return new Answer(Transport.STAGED, question.failure());
    }
    if (cached && question.descriptorAbsence().isEmpty()) {
      return new Answer(Transport.STAGED, "no bytes had to be read past the page cache");
    }
    String refusal = refusal(question, Transport.GDS, cuFile);
    return refusal.isEmpty()
        ? new Answer(Transport.GDS, "")
        : new Answer(Transport.STAGED, "no gds: " + refusal);
  }

  /// Finds the reason why a transport of cuFile cannot serve; empty if it can. Only `gds` needs a
  /// direct descriptor.
  private static String refusal(Question question, Transport transport, CuFileProbe cuFile) {
    if (!question.descriptorAbsence().isEmpty()) {
      return question.descriptorAbsence();
    }
    if (transport == Transport.GDS && !question.directAbsence().isEmpty()) {
      return question.directAbsence();
    }
    return cuFile.refusal(transport);
  }

  /// The transport of one write: cuFile writes whole blocks from aligned pieces of device memory. All other bytes
  /// are written from where they are, or copied to a buffer first.
  ///
  /// @param source where the bytes are
  /// @param whole whether the source is the whole write, or cuFile writes several sources together
  /// @param file the transport of the file
  public static Transport ofWrite(Source source, boolean whole, Transport file) {
    return switch (source) {
      case Memory.OnHost _, Source.FilePart _ -> Transport.HOST;
      case Memory.OnDevice(var _, long address, long length) ->
          whole && (address | length) % PlanLimits.BLOCK_BYTES == 0 ? file : Transport.STAGED;
    };
  }

  /// Makes the exception for a transport that was asked for by name and cannot serve.
  public static DeviceUnavailableException unavailable(Transport transport, String reason) {
    return new DeviceUnavailableException("transport " + transport + " cannot serve: " + reason);
  }
}
