"""The scale on which an embedder's cosines lie: what it is (scales), which one holds now (current), and how it is
fitted on the documents of a site (material, sampling, fitting)."""
